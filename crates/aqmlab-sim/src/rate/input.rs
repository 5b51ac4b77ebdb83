//! Input files of scenarios. Parsed contents are cached with the file, so the points of a study
//! that use the same file parse it once.

use std::sync::{Arc, Mutex, OnceLock};

use aqmlab_core::{Error, Result};

use super::Scale;
use super::files::{Opportunities, Row, digest, parse_columns, rows};
use super::schedule::Schedule;

/// File content, with its parsed forms.
#[derive(Debug, Default)]
pub struct InputFile {
    content: Vec<u8>,
    digest: OnceLock<String>,
    opportunities: OnceLock<Arc<Opportunities>>,
    /// Parsed columns by scale: links may use the same file with different units.
    columns: Mutex<Vec<(Scale, Schedule)>>,
}

impl InputFile {
    /// Creates a file with this content.
    pub fn new(content: Vec<u8>) -> Self {
        InputFile { content, ..InputFile::default() }
    }

    /// Returns the content.
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// Sets or verifies the digest of the content; `name` is for the error.
    pub(super) fn identify(&self, named: &mut Option<String>, name: &str) -> Result<()> {
        let digest = self.digest.get_or_init(|| digest(&self.content));
        match named {
            Some(before) if before != digest => {
                let problem = format!("the file has changed: its content is now {digest}");
                Err(Error::new(problem).given(before).in_file(name))
            }
            _ => {
                *named = Some(digest.clone());
                Ok(())
            }
        }
    }

    /// Parses delivery opportunities.
    pub(super) fn opportunities(&self, name: &str) -> Result<Arc<Opportunities>> {
        if let Some(known) = self.opportunities.get() {
            return Ok(Arc::clone(known));
        }
        let read = Arc::new(Opportunities::parse(&self.content, name)?);
        Ok(Arc::clone(self.opportunities.get_or_init(|| read)))
    }

    /// Parses columns of any kind; `name` is for errors.
    pub(crate) fn rows<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Result<Row<'a>>> {
        rows(&self.content, name)
    }

    /// Parses two columns.
    pub(super) fn columns(&self, name: &str, scale: &Scale) -> Result<Schedule> {
        let mut known = self.columns.lock().expect("no holder of this lock panics");
        if let Some((_, schedule)) = known.iter().find(|(each, _)| each == scale) {
            return Ok(schedule.clone());
        }
        let schedule = parse_columns(&self.content, name, scale)?;
        known.push((*scale, schedule.clone()));
        Ok(schedule)
    }
}
