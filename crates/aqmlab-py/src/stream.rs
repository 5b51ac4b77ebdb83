//! A table as a stream of the Arrow C data interface, with one batch.
//!
//! The structures are those of the Arrow specification, *C data interface* and *C stream
//! interface*. Whoever receives one calls its `release`; it may move a child out first, which it
//! marks by a null `release` in the parent. Buffers are not copied: each exported structure holds
//! a reference to the table. `unsafe` is confined to this file.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use crate::columns::{Column, Table, Values};

const NULLABLE: i64 = 2;

#[repr(C)]
pub struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

#[repr(C)]
pub struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

#[repr(C)]
pub struct ArrowArrayStream {
    get_schema: unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int,
    get_next: unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int,
    get_last_error: unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

/// State of a stream: the table until its batch was taken.
struct Reading {
    table: Arc<Table>,
    read: bool,
}

/// What a schema or an array points to; `release` frees it.
struct Held<T> {
    _table: Option<Arc<Table>>,
    _format: CString,
    _name: CString,
    buffers: Vec<*const c_void>,
    children: Vec<*mut T>,
    dictionary: *mut T,
}

/// The fields by which both structures are released alike.
trait Exported: Sized {
    fn parts(&mut self) -> (&mut Option<unsafe extern "C" fn(*mut Self)>, *mut c_void);
}

impl Exported for ArrowSchema {
    fn parts(&mut self) -> (&mut Option<unsafe extern "C" fn(*mut Self)>, *mut c_void) {
        (&mut self.release, self.private_data)
    }
}

impl Exported for ArrowArray {
    fn parts(&mut self) -> (&mut Option<unsafe extern "C" fn(*mut Self)>, *mut c_void) {
        (&mut self.release, self.private_data)
    }
}

unsafe extern "C" fn release<T: Exported>(exported: *mut T) {
    // SAFETY: the interface has `exported` be valid and not released; `private_data` and the
    // structures below it came from `Box::into_raw` here.
    unsafe {
        let (this, held) = (*exported).parts();
        *this = None;
        let held = Box::from_raw(held.cast::<Held<T>>());
        for below in held.children.iter().copied().chain([held.dictionary]) {
            if below.is_null() {
                continue;
            }
            let mut below = Box::from_raw(below);
            if let Some(release) = *below.parts().0 {
                release(&raw mut *below);
            }
        }
    }
}

fn schema(format: &str, name: &str, nullable: bool, children: Vec<ArrowSchema>) -> ArrowSchema {
    let text = |text: &str| CString::new(text).expect("names have no null bytes");
    let dictionary = if format == "i" { Some(schema("u", "", false, vec![])) } else { None };
    let held = Box::new(Held {
        _table: None,
        _format: text(format),
        _name: text(name),
        buffers: vec![],
        children: children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect(),
        dictionary: dictionary.map_or(null_mut(), |values| Box::into_raw(Box::new(values))),
    });
    let held = Box::leak(held);
    ArrowSchema {
        format: held._format.as_ptr(),
        name: held._name.as_ptr(),
        metadata: null(),
        flags: if nullable { NULLABLE } else { 0 },
        n_children: held.children.len() as i64,
        children: held.children.as_mut_ptr(),
        dictionary: held.dictionary,
        release: Some(release::<ArrowSchema>),
        private_data: (&raw mut *held).cast(),
    }
}

fn array(
    table: &Arc<Table>,
    (length, nulls): (usize, usize),
    buffers: Vec<*const c_void>,
    children: Vec<ArrowArray>,
    dictionary: Option<ArrowArray>,
) -> ArrowArray {
    let held = Box::leak(Box::new(Held {
        _table: Some(Arc::clone(table)),
        _format: CString::default(),
        _name: CString::default(),
        buffers,
        children: children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect(),
        dictionary: dictionary.map_or(null_mut(), |values| Box::into_raw(Box::new(values))),
    }));
    ArrowArray {
        length: length as i64,
        null_count: nulls as i64,
        offset: 0,
        n_buffers: held.buffers.len() as i64,
        n_children: held.children.len() as i64,
        buffers: held.buffers.as_mut_ptr(),
        children: held.children.as_mut_ptr(),
        dictionary: held.dictionary,
        release: Some(release::<ArrowArray>),
        private_data: (&raw mut *held).cast(),
    }
}

fn column(table: &Arc<Table>, column: &Column) -> ArrowArray {
    let valid = if column.nulls > 0 { column.valid.as_ptr().cast() } else { null() };
    let mut dictionary = None;
    let values = match &column.values {
        Values::U32(values) => values.as_ptr().cast(),
        Values::U64(values) => values.as_ptr().cast(),
        Values::F64(values) => values.as_ptr().cast(),
        Values::Bool(bits) => bits.as_ptr().cast(),
        Values::Text { keys, ends, letters } => {
            let parts = vec![null(), ends.as_ptr().cast(), letters.as_ptr().cast()];
            dictionary = Some(array(table, (ends.len() - 1, 0), parts, vec![], None));
            keys.as_ptr().cast()
        }
    };
    array(table, (table.rows, column.nulls), vec![valid, values], vec![], dictionary)
}

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the interface has both be valid, and the stream not released.
    unsafe {
        let reading = &*(*stream).private_data.cast::<Reading>();
        let fields = reading.table.columns.iter();
        let fields = fields.map(|c| schema(c.values.format(), &c.name, c.nullable, vec![]));
        out.write(schema("+s", "", false, fields.collect()));
    }
    0
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as for `get_schema`; a released array marks the end of the stream.
    unsafe {
        let reading = &mut *(*stream).private_data.cast::<Reading>();
        let table = &reading.table;
        if std::mem::replace(&mut reading.read, true) {
            (&raw mut (*out).release).write(None);
        } else {
            let columns = table.columns.iter().map(|each| column(table, each)).collect();
            out.write(array(table, (table.rows, 0), vec![null()], columns, None));
        }
    }
    0
}

unsafe extern "C" fn get_last_error(_: *mut ArrowArrayStream) -> *const c_char {
    null()
}

unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: as for `get_schema`; `private_data` is the box of `ArrowArrayStream::new`.
    unsafe {
        (*stream).release = None;
        drop(Box::from_raw((*stream).private_data.cast::<Reading>()));
    }
}

impl ArrowArrayStream {
    pub fn new(table: Arc<Table>) -> Self {
        ArrowArrayStream {
            get_schema,
            get_next,
            get_last_error,
            release: Some(release_stream),
            private_data: Box::into_raw(Box::new(Reading { table, read: false })).cast(),
        }
    }
}

impl Drop for ArrowArrayStream {
    /// Releases a stream that was not taken from its capsule.
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it is not released yet.
            unsafe { release(self) }
        }
    }
}

// SAFETY: the pointers lead to a table that does not change and is shared by counted references.
unsafe impl Send for ArrowArrayStream {}
