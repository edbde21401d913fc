"""Functions that the user declares by name: CREATE FUNCTION. The catalog stores names and types, never code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from rejoinder.ir.type_names import spark_name

FunctionKind = Literal["scalar", "table", "aggregate"]
TIMEOUT = 60.0
"""How many seconds a call may take unless the function is declared with a timeout."""


@dataclass(frozen=True)
class UserFunction:
    """A function in Python under a name of SQL. Every process imports it by its reference, `module:function`."""

    name: str
    arguments: pa.Schema
    result: pa.DataType
    """The type of a value; of a table function, the struct of its columns."""
    reference: str
    kind: FunctionKind = "scalar"
    vectorized: bool = False
    """Whether a call gets Arrow arrays, with a value for each of several rows, instead of the values of one row."""
    timeout: float = TIMEOUT
    """How many seconds a call may take."""
    version: str = ""
    """What the user declares, to say that the function computes something else now."""

    @property
    def identity(self) -> str:
        """What tells the values of a function from those of another one."""
        return f"{self.kind} {self.reference}{' of arrays' if self.vectorized else ''} version '{self.version}'"

    @property
    def signature(self) -> str:
        """Name, arguments and result, as SQL writes them."""
        listed = ", ".join(f"{field.name} {spark_name(field.type).upper()}" for field in self.arguments)
        if self.kind == "table":
            columns = ", ".join(f"{field.name} {spark_name(field.type).upper()}" for field in self.result)
            return f"{self.name}({listed}) RETURNS TABLE ({columns})"
        return f"{self.name}({listed}) RETURNS {spark_name(self.result).upper()}"

    @property
    def options(self) -> dict[str, str]:
        """The options of its declaration that are not the defaults, as text."""
        given = {"vectorized": "true"} if self.vectorized else {}
        given |= {"timeout": f"{self.timeout:g} seconds"} if self.timeout != TIMEOUT else {}
        return given | ({"version": self.version} if self.version else {})

    @property
    def text(self) -> str:
        """The declaration, without CREATE."""
        word = "AGGREGATE FUNCTION" if self.kind == "aggregate" else "FUNCTION"
        listed = ", ".join(f"{name} '{value}'" for name, value in self.options.items())
        options = f" OPTIONS ({listed})" if listed else ""
        return f"{word} {self.signature} LANGUAGE PYTHON{options} AS '{self.reference}'"

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the manifest."""
        types = pa.schema([*self.arguments, pa.field("result", self.result)])
        return {
            "name": self.name,
            "types": types.serialize().to_pybytes().hex(),
            "reference": self.reference,
            "kind": self.kind,
            "vectorized": self.vectorized,
            "timeout": self.timeout,
            "version": self.version,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> UserFunction:
        """Read what `to_json` returned."""
        types = pa.ipc.read_schema(pa.BufferReader(bytes.fromhex(data["types"])))
        return cls(
            data["name"],
            pa.schema(list(types)[:-1]),
            types.field(len(types) - 1).type,
            data["reference"],
            data["kind"],
            data["vectorized"],
            data["timeout"],
            data["version"],
        )
