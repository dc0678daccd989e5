package filejournal

import "golang.org/x/sys/windows"

// canOwn reports whether a directory can be locked and synced. Windows can do neither, so directories are only read
// there ("interlock admin journal verify").
const canOwn = false

func fileID(fd int) (device, inode uint64, err error) {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(fd), &info); err != nil {
		return 0, 0, err
	}
	return uint64(info.VolumeSerialNumber), uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow), nil
}

func freeBytes(string) (free int64, ok bool) { return 0, false }
