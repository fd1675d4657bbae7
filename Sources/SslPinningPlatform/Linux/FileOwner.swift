#if os(Linux)
  import Foundation

  extension AtomicFile {
    /// What root writes over is still its owner's: a tool that runs as root must not keep a service from its file.
    ///
    /// Apple has apps give a reason for `stat`, and no app runs as root: so it stands here.
    func keepOwner(of descriptor: borrowing Descriptor) {
      var (before, new) = (stat(), stat())
      guard geteuid() == 0, lstat(path, &before) == 0, before.st_uid != 0,
        // What lay there may be a second name of a file of root's.
        fstat(descriptor.number, &new) == 0, new.st_nlink == 1
      else { return }
      // If it cannot be given away, whoever owns it is told when he reads it.
      _ = fchown(descriptor.number, before.st_uid, before.st_gid)
    }
  }
#endif
