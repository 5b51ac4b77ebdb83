//! Output files of captures, logs and records.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Creates or truncates a file. The file may be a pipe with a reader, such as Wireshark. Opening a
/// pipe without a reader would block.
///
/// # Errors
/// Returns the system's error; for a pipe without a reader "No such device or address" (`ENXIO`).
pub fn create(path: &Path) -> io::Result<File> {
    if fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
        // While this is open, the pipe has a reader: the open below does not block.
        let _asked = File::options().write(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        return File::options().write(true).open(path);
    }
    // Captures hold what others sent: only the file's owner may read it, even if it was there.
    let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    if file.metadata()?.is_file() {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::Command;
    use std::thread;

    use super::*;

    #[test]
    fn a_file_is_its_owners_only() {
        let file = std::env::temp_dir().join(format!("aqmlab-private-{}", std::process::id()));
        drop(create(&file).unwrap());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        drop(create(&file).unwrap());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_file(file).unwrap();
    }

    #[test]
    fn a_pipe_is_opened_if_somebody_reads() {
        let folder = std::env::temp_dir().join(format!("aqmlab-output-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let pipe = folder.join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let refused = create(&pipe).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENXIO));
        let place = pipe.clone();
        let reader = thread::spawn(move || {
            let mut read = String::new();
            File::open(place).unwrap().read_to_string(&mut read).unwrap();
            read
        });
        let mut writer = loop {
            match create(&pipe) {
                Ok(writer) => break writer,
                Err(_) => thread::yield_now(),
            }
        };
        io::Write::write_all(&mut writer, b"packets").unwrap();
        drop(writer);
        assert_eq!(reader.join().unwrap(), "packets");
        fs::remove_dir_all(folder).unwrap();
    }
}
