"""A catalog of Spark's whose tables keep versions, as those of Delta and Iceberg do, for tests: their own jars are in no package.

Spark resolves `VERSION AS OF` through the interface that they implement. Here a version is a folder of Parquet with a number,
and a table without one is its newest. The class is compiled by the compiler that every Spark has with it.
"""

import atexit
import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = Path(mkdtemp(prefix="reticent-spark-lake-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
CLASSES, TABLES = FOLDER / "classes", FOLDER / "tables"
CLASSES.mkdir()  # a folder that is not there when Java starts is never looked into
SETTINGS = {
    "spark.driver.extraClassPath": str(CLASSES),
    "spark.sql.catalog.lake": "lake.Versions",
    "spark.sql.catalog.lake.folder": str(TABLES),
}
SOURCE = """
package lake;

import java.io.File;
import java.util.Collections;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetTable;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.CollectionConverters;

public class Versions implements TableCatalog {
    private String name;
    private String folder;

    public void initialize(String name, CaseInsensitiveStringMap options) {
        this.name = name;
        this.folder = options.get("folder");
    }

    public String name() { return name; }

    public Table loadTable(Identifier table) throws NoSuchTableException {
        String[] versions = new File(folder, table.name()).list();
        int newest = 0;
        for (int i = 0; versions != null && i < versions.length; i++)
            newest = Math.max(newest, Integer.parseInt(versions[i]));
        return loadTable(table, String.valueOf(newest));
    }

    public Table loadTable(Identifier table, String version) throws NoSuchTableException {
        File at = new File(new File(folder, table.name()), version);
        if (!at.isDirectory()) throw new NoSuchTableException(table);
        scala.collection.immutable.Seq paths = CollectionConverters.ListHasAsScala(
            Collections.singletonList(at.getPath())).asScala().toSeq();
        return new ParquetTable(table.name(), SparkSession.active(), CaseInsensitiveStringMap.empty(), paths,
            scala.Option.empty(), ParquetFileFormat.class);
    }

    public Identifier[] listTables(String[] namespace) { return new Identifier[0]; }

    public boolean dropTable(Identifier table) { return false; }

    public Table alterTable(Identifier table, TableChange[] changes) { throw new UnsupportedOperationException(); }

    public void renameTable(Identifier one, Identifier other) { throw new UnsupportedOperationException(); }
}
"""


def compiled(session: Any) -> None:
    """The catalog's class, where the session looks for it."""
    if any(CLASSES.iterdir()):
        return
    compiler = session.sparkContext._jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(SOURCE)
    for name, code in dict(compiler.getBytecodes()).items():
        path = CLASSES / f"{name.replace('.', '/')}.class"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(code))


def write(table: str, version: int, rows: pa.Table) -> None:
    """One more version of a table, or its first. It is there as a whole or not at all."""
    into = TABLES / table / str(version)
    part = FOLDER / f"{table}.part"
    part.mkdir(parents=True)
    pq.write_table(rows, part / "rows.parquet")
    into.parent.mkdir(parents=True, exist_ok=True)
    part.rename(into)
