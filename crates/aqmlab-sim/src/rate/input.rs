//! Files that scenarios name. What is made of one is kept with it: the points of a study that are
//! given the same file read it once.

use std::sync::{Arc, Mutex, OnceLock};

use aqmlab_core::{Error, Result};

use super::Scale;
use super::files::{Opportunities, Row, digest, parse_columns, rows};
use super::schedule::Schedule;

/// A file as it was read, and what has been made of it so far.
#[derive(Debug)]
pub struct InputFile {
    content: Vec<u8>,
    digest: OnceLock<String>,
    opportunities: OnceLock<Arc<Opportunities>>,
    /// By what the second column means: links may take the same file in other units.
    columns: Mutex<Vec<(Scale, Schedule)>>,
}

impl InputFile {
    /// A file with this content.
    pub fn new(content: Vec<u8>) -> Self {
        InputFile {
            content,
            digest: OnceLock::new(),
            opportunities: OnceLock::new(),
            columns: Mutex::default(),
        }
    }

    /// The content.
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// Sets or checks what names the content; `name` is for the error.
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

    /// It holds delivery opportunities.
    pub(super) fn opportunities(&self, name: &str) -> Result<Arc<Opportunities>> {
        if let Some(known) = self.opportunities.get() {
            return Ok(Arc::clone(known));
        }
        let read = Arc::new(Opportunities::parse(&self.content, name)?);
        Ok(Arc::clone(self.opportunities.get_or_init(|| read)))
    }

    /// It holds columns of whatever kind; `name` is for errors.
    pub(crate) fn rows<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Result<Row<'a>>> {
        rows(&self.content, name)
    }

    /// It holds two columns.
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
