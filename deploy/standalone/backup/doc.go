// Package backup writes backups of a data directory and restores them. It copies files without reading them: the
// program copies its engines into the directory of a backup, in the order that makes the copies one consistent set.
//
// # A backup
//
// A backup is a directory with the files of a data directory and manifest.json, which has the size and SHA-256 of each
// file and a checksum of its own. The manifest is written last, by a rename, when all other files are on the disk. A
// directory without a manifest is no backup.
//
// # A restore
//
// A restore is all or nothing, whenever it is killed. The state is in the names in the data directory:
//
//	restore.partial          files are copied here and compared with the manifest; the data is as it was before
//	restore.committed-TIME   the restore has happened: what else is in the data directory moves to replaced-TIME
//	restore.ready            the files move from here to the data directory
//	(none of these)          the data is the backup's
//
// A restore that was killed in the first state has no effect. In the others, [Finish] completes it: the program calls
// it before it opens the data. Each state begins by one rename, after everything before is on the disk.
package backup
