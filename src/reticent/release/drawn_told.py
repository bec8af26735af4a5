"""What a release says of the lot it was drawn by: the piece it read, and what its promise is worth to everybody else."""

from typing import Any

from reticent.decimals import show
from reticent.privacy.claim import while_secret
from reticent.privacy.pieces import KEY, KEY_GROUND
from reticent.release.partition_section import Partition
from reticent.release.plan import Plan


def _share(partition: Partition) -> dict[str, Any]:
    """A piece by values has no public share."""
    if partition.is_by_values:
        return {}
    return {"share": show(partition.share), "scale": show(partition.scale)}


def drawn_section(plan: Plan) -> dict[str, Any]:
    """Nothing for a release of a whole survey that says nothing of its frame."""
    told: dict[str, Any] = {}
    if plan.partition is not None:
        piece = plan.partition.piece
        told["piece"] = {
            "partition": piece.partition,
            "number": piece.number,
            "of": len(piece.parts),
            "draw": piece.draw,
            **_share(plan.partition),
            "words": plan.partition.words,
            **({"secret": secret} if (secret := plan.partition.secret(plan.change)) else {}),
        }
    if plan.frames:
        told["frames"] = [
            {"words": str(claim), **claim.as_dict(), "secret": secret} for secret, claim in plan.frames
        ]
    return told


def resting_told(told: Any, plan: Plan) -> Any:
    """What a release tells, with the key's secrecy in every claim that rests on it, wherever in it a claim stands."""
    if plan.partition is None or not plan.partition.secret(plan.change):
        return told
    if isinstance(told, list):
        return [resting_told(each, plan) for each in told]
    if not isinstance(told, dict):
        return told
    inner = {name: resting_told(each, plan) for name, each in told.items()}
    if not {"words", "measure", "rests_on"} <= set(told) or told["measure"] == "observed" or "secret" in told:
        return inner
    ground = {"theorem": KEY_GROUND[0], "proof": KEY_GROUND[1]}
    grounds = told["rests_on"] if ground in told["rests_on"] else [*told["rests_on"], ground]
    return {**inner, "words": told["words"] + while_secret(KEY), "rests_on": grounds, "secret": KEY}
