//! Overrides of scenario keys: `--set`, axes of studies, changes.
//!
//! A key is a scenario key, or a short form:
//! 1. `queue` and `queue.KEY` refer to the queue of the bottleneck;
//! 2. `NAME.KEY` refers to `links.NAME.KEY`, if a link has this name.

use aqmlab_core::{Error, ParamType, Params, Result, Table, Value};

use super::{LinkParams, RunParams};
use crate::network::egress::ShaperParams;

/// Tables at the top of a scenario, next to its parameters.
pub(super) const TOP_KEYS: &[&str] = &["links", "flows", "transport", "record", "changes"];

/// Single setting.
#[derive(Clone, Copy)]
pub(super) struct Override<'a> {
    /// Key and value, as written.
    pub setting: &'a (String, Value),
    /// Option that contains the setting; errors name it, or the file without one.
    pub option: Option<&'static str>,
}

impl Override<'_> {
    /// Returns true if the setting refers to the queue of the bottleneck.
    pub fn is_of_bottleneck(&self) -> bool {
        let (key, _) = self.setting;
        key == "queue" || key.starts_with("queue.")
    }

    /// Sets the value at the whole key in `table`.
    pub fn apply(&self, table: &mut Table, key: &str) -> Result<()> {
        set(table, key, &self.setting.1).map_err(|error| self.blamed(error, key))
    }

    /// Adds the option and the key as written to an error about this setting, unless another one
    /// did.
    pub fn blamed(&self, error: Error, key: &str) -> Error {
        let rest =
            error.key.strip_prefix(key).filter(|rest| !rest.starts_with(char::is_alphanumeric));
        match (self.option, rest) {
            (Some(option), Some(rest)) if error.file.is_none() => {
                let key = format!("{}{rest}", self.setting.0);
                Error { key, ..error }.in_file(option)
            }
            _ => error,
        }
    }
}

/// Returns true for `links.NAME.queue` and the keys below it.
pub(super) fn is_of_queue(whole: &str) -> bool {
    let mut parts = whole.split('.');
    parts.next() == Some("links") && parts.nth(1) == Some("queue")
}

/// Returns the complete key of a setting of `table`.
pub(super) fn whole_key(table: &Table, key: &str) -> Result<String> {
    let links = table.get("links").and_then(|links| links.as_table().ok());
    let key = with_link(key, links.into_iter().flat_map(Table::keys))?;
    of_known(table, &key).map(|()| key)
}

/// Completes a key with `links.` if it begins with one of these links.
///
/// # Errors
/// Returns an error if it begins with neither a link nor a key of a scenario.
pub(super) fn with_link<'a>(
    key: &str,
    links: impl Iterator<Item = &'a str> + Clone,
) -> Result<String> {
    let first = key.split('.').next().unwrap_or(key);
    if TOP_KEYS.contains(&first) || known_keys().any(|known| known == first) {
        return Ok(key.to_string());
    }
    if first != key && links.clone().any(|name| name == first) {
        return Ok(format!("links.{key}"));
    }
    let mut error = Error::unknown("key", first, known_keys().chain(links));
    error.given = None;
    Err(error.at(key))
}

fn known_keys<'a>() -> impl Iterator<Item = &'a str> + Clone {
    let specs = RunParams::specs().into_iter().map(|spec| spec.name);
    specs.collect::<Vec<_>>().into_iter().chain(TOP_KEYS.iter().copied()).chain(["queue"])
}

/// Rejects settings of unknown links or flows, which would create new ones.
fn of_known(table: &Table, path: &str) -> Result<()> {
    let mut parts = path.splitn(3, '.');
    let kind = parts.next().unwrap_or(path);
    let what = match kind {
        "links" => "link",
        "flows" => "group of flows",
        _ => return Ok(()),
    };
    let (Some(name), Some(_)) = (parts.next(), parts.next()) else { return Ok(()) };
    match table.get(kind).and_then(|value| value.as_table().ok()) {
        Some(known) if known.get(name).is_none() => {
            let names: Vec<&str> = known.keys().collect();
            Err(Error::unknown(what, name, names).at(path))
        }
        _ => Ok(()),
    }
}

/// Sets the value at a dotted path. A name or number such as `queue = "codel"` becomes a table if
/// needed, so that a key can be set in it; a link without `queue` has the default queue.
pub(super) fn set(table: &mut Table, path: &str, value: &Value) -> Result<()> {
    if let Some((outer, _)) = path.rsplit_once('.') {
        let last = outer.rsplit('.').next().unwrap_or(outer);
        let given = at_key(table, outer).filter(|value| !matches!(value, Value::Table(_))).cloned();
        let is_absent = at_key(table, outer).is_none();
        let name_key = match last {
            "queue" => Some("discipline"),
            "congestion_control" => Some("algorithm"),
            "workload" | "endpoint" => Some("kind"),
            "loss" | "duplicate" => Some("chance"),
            _ => None,
        };
        let name = match last {
            "queue" if is_absent => Some(LinkParams::default().queue.to_value()),
            _ => given.clone(),
        };
        if let (Some(name_key), Some(name)) = (name_key, name) {
            let spelled = [(name_key.to_string(), name)].into_iter().collect();
            table.set_key(outer, Value::Table(spelled))?;
        } else if let ("shaper", Some(words)) =
            (last, given.filter(|words| *words != "none".into()))
        {
            let shaper = ShaperParams::parse(&words).map_err(|error| error.at(outer))?;
            table.set_key(outer, shaper.to_value())?;
        }
    }
    table.set_key(path, value.clone())
}

/// Returns the value at a dotted path.
pub(super) fn at_key<'a>(table: &'a Table, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        None => table.get(path),
        Some((head, rest)) => at_key(table.get(head)?.as_table().ok()?, rest),
    }
}
