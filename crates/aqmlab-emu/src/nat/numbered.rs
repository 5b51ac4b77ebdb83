//! Items with numbers that epoll can hold.

/// Numbered items. A number is reused only after the events that may refer to it.
pub struct Numbered<T> {
    pub all: Vec<Option<T>>,
    free: Vec<u32>,
    pub freed: Vec<u32>,
}

impl<T> Numbered<T> {
    pub fn new() -> Self {
        Numbered { all: Vec::new(), free: Vec::new(), freed: Vec::new() }
    }
    /// Returns the number of the next item.
    pub fn next(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            (self.all.len() - 1) as u32
        })
    }
    pub fn take(&mut self, number: u32) -> Option<T> {
        let taken = self.all.get_mut(number as usize)?.take()?;
        self.freed.push(number);
        Some(taken)
    }
    pub fn get(&mut self, number: u32) -> Option<&mut T> {
        self.all.get_mut(number as usize)?.as_mut()
    }
    pub fn settle(&mut self) {
        self.free.append(&mut self.freed);
    }
}
