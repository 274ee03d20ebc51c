// Package sealed keeps secrets in files that nobody but their owner can read.
//
// A [File] is encrypted with age, replaced whole or not at all, of mode 0600 in a
// folder of mode 0700. A [Key] says where the age identity is that opens it: given,
// in a file of its own, or in the keyring of the operating system; the latter two
// make one when the first file is written.
//
//	f := sealed.File{Path: path, Key: sealed.KeyFile(keyPath)}
//	err := f.Update(ctx, func(old []byte) ([]byte, error) { return change(old) })
//
// [File.Update] holds a lock against every other writer, of this process and of
// others, and gives up where what is there can't be read: a file is never
// replaced unseen. Errors name files, and never what is in them.
package sealed
