"""Tables of files, checked by pydantic models: every mistake is one `InputError` that names the
file, the key, what was given and what is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from aqmlab.errors import InputError, input_error, unknown

WORDS = {
    "string_type": "expected text",
    "float_type": "expected a number",
    "int_type": "expected a whole number",
    "greater_than_equal": "expected a whole number from {ge}",
    "list_type": "expected a list",
    "bool_type": "expected true or false",
    "less_than_equal": "expected a whole number up to {le}",
    "dict_type": "expected {table}",
    "model_type": "expected {table}",
    "too_short": "expected at least one entry",
}


Model = TypeVar("Model", bound=BaseModel)


def checked(
    model: type[Model],
    given: Mapping[str, Any],
    file: str,
    where: str = "",
    table: str = "a table",
) -> Model:
    """The table as a form; `where` is its place in the file, and `table` the word for one. Raises
    `InputError`."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise _told(error, model, file, where, table) from None


def _told(
    error: ValidationError, model: type[BaseModel], file: str, place: str, table: str
) -> InputError:
    """The first of the mistakes in our words."""
    first = error.errors()[0]
    *above, last = [str(each + 1 if isinstance(each, int) else each) for each in first["loc"]]
    where = ".".join([*([place] if place else []), *above])
    if first["type"] == "extra_forbidden":
        for each in above:
            field = model.model_fields.get(each)
            model = _model_in(field.annotation) or model if field else model
        return unknown("key", last, list(model.model_fields), file=file, key=where)
    key = f"{where}.{last}" if where else last
    if first["type"] == "missing":
        return input_error("this key is missing", file=file, key=key)
    problem = WORDS.get(first["type"], first["msg"]).format(table=table, **first.get("ctx", {}))
    return input_error(problem, file=file, key=key, given=first["input"])


def _model_in(kind: Any) -> type[BaseModel] | None:
    """The form that an annotation has: of a list, a table, or an optional one."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    return next((found for each in get_args(kind) if (found := _model_in(each))), None)
