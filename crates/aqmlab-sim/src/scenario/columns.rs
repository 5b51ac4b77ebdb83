//! Distributions with values in a file: `{ list = { file = ... } }` and `{ cdf = { file = ... } }`
//! are replaced by the values.

use aqmlab_core::params::read_value;
use aqmlab_core::{Error, Params, Result, Table, Value, params};

use crate::rate::{ReadFile, Row};

params! {
    /// Values of a distribution from a file of columns.
    pub struct ColumnParams {
        /// File name; relative to the scenario, then to the working directory.
        file: String, required "sizes.csv", source "this program";
        /// Column of the values, from 1; the shares of a `cdf` are in the next column.
        column: u64 = 1, in 1 => 1000, source "this program";
        /// Unit of numbers without one, such as `b` or `s`; `none`: no unit.
        unit: Option<String> = None, source "this program";
        /// True if the values are times whose differences form the list; the first counts from 0.
        differences: bool = false, source "this program";
    }
}

/// Maximum length of a list, which becomes part of the scenario.
const MOST: usize = 100_000;

/// Returns `value` with file references replaced by the file's values.
pub(crate) fn with_columns(value: &Value, read_file: ReadFile<'_>) -> Result<Value> {
    let Value::Table(table) = value else { return Ok(value.clone()) };
    let inner = |(key, value): (&str, &Value)| {
        let read = match (key, value) {
            ("list" | "cdf", Value::Table(place)) => read_column(key, place, read_file),
            _ => with_columns(value, read_file),
        };
        Ok((key.to_string(), read.map_err(|error| error.at(key))?))
    };
    Ok(Value::Table(table.iter().map(inner).collect::<Result<_>>()?))
}

fn read_column(law: &str, place: &Table, read_file: ReadFile<'_>) -> Result<Value> {
    let params = ColumnParams::from_table(place)?;
    let file = read_file(&params.file).map_err(|error| error.at("file"))?;
    let rows = file.rows(&params.file).collect::<Result<Vec<_>>>()?;
    let values = match law {
        "cdf" => cumulative(&params, &rows)?,
        _ if params.differences => distances(&params, &rows)?,
        _ => rows
            .iter()
            .map(|row| Ok(with_unit(&params, row.field(index(&params))?)))
            .collect::<Result<_>>()?,
    };
    if values.is_empty() || values.len() > MOST {
        let problem = format!("expected 1 to {MOST} lines");
        return Err(Error::new(problem).given(values.len()).in_file(&params.file));
    }
    Ok(Value::List(values))
}

fn index(params: &ColumnParams) -> usize {
    params.column as usize - 1
}

fn with_unit(params: &ColumnParams, text: &str) -> Value {
    let is_bare = text.ends_with(|last: char| last.is_ascii_digit() || last == '.');
    let unit = params.unit.as_deref().filter(|_| is_bare).unwrap_or_default();
    Value::Text(format!("{text}{unit}"))
}

/// Returns the values with their cumulative shares; the last share is 1, or 100 per cent.
fn cumulative(params: &ColumnParams, rows: &[Row<'_>]) -> Result<Vec<Value>> {
    let value = index(params);
    let share = |row: &Row<'_>| row.number(value + 1);
    let whole = match rows.last().map(share).transpose()? {
        Some(100.0) => 100.0,
        _ => 1.0,
    };
    let pair = |row: &Row<'_>| {
        let share = Value::Float(share(row)? / whole);
        Ok(Value::List(vec![with_unit(params, row.field(value)?), share]))
    };
    rows.iter().map(pair).collect()
}

/// Returns the time from each line to the next; the first is from 0.
fn distances(params: &ColumnParams, rows: &[Row<'_>]) -> Result<Vec<Value>> {
    let mut last = 0.0;
    let distance = |row: &Row<'_>| {
        let time = row.number(index(params))?;
        let distance = time - last;
        if distance < 0.0 {
            return Err(row.wrong(format!("a time not before that of the line before, {last}")));
        }
        last = time;
        // Whole nanoseconds, in the shortest text.
        let text = format!("{distance:.9}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        let value = with_unit(params, text);
        read_value::<aqmlab_core::Span>(&value).map_err(|error| error.at("unit"))?;
        Ok(value)
    };
    rows.iter().map(distance).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::rate::InputFile;
    use crate::scenario::parse_value;

    fn read(text: &str, content: &str) -> Result<Value> {
        let file = |_: &str| Ok(Arc::new(InputFile::new(content.as_bytes().to_vec())));
        with_columns(&parse_value(text), &file)
    }

    #[test]
    fn columns_become_values() {
        let flows = "time,size\r\n0.5, 1500\n0.75,20kb\n\n# more\n2,3\n";
        for (given, expected) in [
            (
                "{ size = { list = { file = 'f', column = 2, unit = 'b' } } }",
                "{ size = { list = ['1500b', '20kb', '3b'] } }",
            ),
            (
                "{ gap = { list = { file = 'f', unit = 's', differences = true } }, number = 3 }",
                "{ gap = { list = ['0.5s', '0.25s', '1.25s'] }, number = 3 }",
            ),
        ] {
            assert_eq!(read(given, flows).unwrap(), parse_value(expected));
        }
        let expected = parse_value("{ cdf = [['1kb', 0.25], ['1mb', 1.0]] }");
        let given = "{ cdf = { file = 'f' } }";
        assert_eq!(read(given, "1kb 0.25\n1mb 1\n").unwrap(), expected);
        assert_eq!(read(given, "1kb\t25\n1mb\t100\n").unwrap(), expected);
        // Values without a file are unchanged.
        let plain = parse_value("{ gap = { uniform = ['1s', '2s'] }, size = '1kb' }");
        assert_eq!(with_columns(&plain, &|_| unreachable!()).unwrap(), plain);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (given, content, expected) in [
            ("{ list = { column = 2 } }", "1", "the key `file` is missing"),
            ("{ list = { file = 'f', colunm = 2 } }", "1", "did you mean `column`?"),
            ("{ list = { file = 'f', column = 2 } }", "1 2\n3\n", "f:2"),
            ("{ list = { file = 'f' } }", "# nothing\n", "1 to 100000 lines"),
            ("{ cdf = { file = 'f' } }", "1kb x\n", "f:1"),
            ("{ list = { file = 'f', differences = true, unit = 's' } }", "2\n1\n", "f:2"),
            ("{ list = { file = 'f', differences = true } }", "2\n", "unit"),
            ("{ list = { file = 'f' } }", "1\n\u{fffd}\u{0}\n", ""),
        ] {
            let found = read(given, content);
            if expected.is_empty() {
                found.unwrap(); // The distribution rejects invalid text.
                continue;
            }
            let error = found.unwrap_err().to_string();
            assert!(error.contains(expected), "{given}: {error}");
        }
    }
}
