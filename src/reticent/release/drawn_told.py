"""What a release says of the lot it was drawn by: the piece it read, and what its promise is worth to everybody else."""

from typing import Any

from reticent.decimals import show
from reticent.release.partition_section import Partition
from reticent.release.plan import Plan


def _share(partition: Partition) -> dict[str, Any]:
    """A piece by values has no public share."""
    if partition.is_by_values:
        return {}
    return {"share": show(partition.share), "scale": show(partition.scale)}


def drawn_told(plan: Plan) -> dict[str, Any]:
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
        }
    if plan.frames:
        told["frames"] = [
            {"words": str(claim), **claim.as_dict(), "secret": secret} for secret, claim in plan.frames
        ]
    return told
