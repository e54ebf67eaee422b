// Package private judges whether a file or directory is its user's own. Writ's
// keys, sessions and record say what it did and in whose name; its
// configuration and policy say what it may do. On a machine with other accounts
// either is worth as much as what the others may do with it.
//
// What is judged is a FileInfo, so that a caller who opened the file judges
// what he opened. Every refusal is an *Error with the command that mends it.
// Permission bits and owners mean nothing on Windows: there only symbolic links
// are refused.
//
// The package trusts root and the account it runs as. Of the directories above a
// file it looks at the one in which a Steering file stands, since a link or
// another file of the same owner may be put there; what somebody else puts in
// the place of a secret belongs to him, and is refused for that.
package private

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/text"
)

// Use is what a file is for, and so what others may do with it. The zero Use
// allows nothing.
type Use int

// The uses.
const (
	// Secret is a key, a session or a record, or a directory of them: nobody but
	// the account Writ runs as reads, writes or owns it, and no symbolic link
	// stands in its place.
	Secret Use = iota
	// Shown is as Secret, but that others may read it: a public key.
	Shown
	// Steering is a file the operator wrote: others may read it, root may own
	// it, and a link may lead to it. Group-write is refused with the rest: whether
	// a group has one member cannot be known here, and ssh and sudo refuse it too.
	Steering
)

// Error is why a file is refused.
type Error struct {
	Path string
	Why  string // one sentence's end, nothing of the path in it
	Mend string // a command for a POSIX shell
}

func (e *Error) Error() string { return strconv.Quote(e.Path) + ": " + e.Why }

// Check judges a file by what fstat, or lstat for what is not opened, says of
// it. It returns nil or an *Error.
func Check(path string, fi fs.FileInfo, use Use) error {
	refuse := func(why, mend string) error { return &Error{Path: path, Why: why, Mend: mend} }
	if fi.Mode()&fs.ModeSymlink != 0 && use != Steering {
		return linked(path)
	}
	uid, known := owner(fi)
	if !known {
		return nil
	}
	if me := os.Geteuid(); uid != me && !(use == Steering && uid == 0) {
		mend := fmt.Sprintf("sudo chown %d %s", me, Quote(path))
		if uid != 0 && use != Steering {
			mend = fmt.Sprintf("sudo -u '#%d' writ …", uid) // it is that account's, and stays so
		}
		return refuse("it belongs to another account, "+strconv.Itoa(uid), mend)
	}
	others := fi.Mode().Perm() & 0o077
	if use != Secret {
		others &= 0o022
	}
	if others == 0 {
		return nil
	}
	why := "others may write it"
	if others&0o022 == 0 {
		why = "others may read it"
	}
	switch {
	case use != Secret:
		return refuse(why, "chmod go-w "+Quote(path))
	case fi.IsDir():
		return refuse(why, "chmod 700 "+Quote(path))
	}
	return refuse(why, "chmod 600 "+Quote(path))
}

// Another says of what is not open to this process that it is another account's: that path,
// or what is nearest above it of those that can be looked at. It returns an *Error, or nil
// where it is this account's or root's, or nobody can tell.
func Another(path string) error {
	fi, err := os.Stat(path)
	for err != nil && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		fi, err = os.Stat(path)
	}
	if err != nil {
		return nil
	}
	if uid, known := owner(fi); !known || uid == 0 || uid == os.Geteuid() {
		return nil
	}
	return Check(path, fi, Secret)
}

// linked refuses what stands behind a symbolic link. A file is moved over its
// link; a directory is named as what it is.
func linked(path string) error {
	e := &Error{Path: path, Why: "it is a symbolic link", Mend: "rm " + Quote(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		if fi, err := os.Stat(real); err == nil && fi.IsDir() {
			e.Mend = "rm " + Quote(path) + " && mv " + Quote(real) + " " + Quote(path)
		} else {
			e.Mend = "mv " + Quote(real) + " " + Quote(path)
		}
	}
	return e
}

// Around judges the directories in which a Steering file stands, by its name and
// in truth: where everybody may rename, the choice among the account's own files
// is everybody's. It returns nil or an *Error. A sticky directory passes; so does
// one that a group may write, as a umask of 002 makes them all.
func Around(path string) error {
	places := []string{filepath.Dir(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		places = append(places, filepath.Dir(real))
	}
	for _, dir := range places {
		fi, err := os.Stat(dir)
		if err != nil {
			continue // nor can the file be opened
		}
		if _, known := owner(fi); known && fi.Mode().Perm()&0o002 != 0 && fi.Mode()&fs.ModeSticky == 0 {
			return &Error{Path: path, Why: "everybody may put another file in its place", Mend: "chmod o-w " + Quote(dir)}
		}
	}
	return nil
}

// At judges what stands at path without opening it.
func At(path string, use Use) error {
	fi, err := os.Lstat(path)
	if err != nil {
		return err
	}
	return Check(path, fi, use)
}

// maxSecret bounds ReadFile: a key, a session or an entry is a line.
const maxSecret = 64 << 10

// ReadFile reads a file of use Secret. What is judged is the file that was
// opened, and no link is followed to it (attacks C06, I11, I12, I17).
func ReadFile(path string) ([]byte, error) { return read(path, maxSecret) }

// ReadWhole is ReadFile without a bound on the size: for what the caller guards
// himself.
func ReadWhole(path string) ([]byte, error) { return read(path, math.MaxInt64-1) }

// Open opens a regular file, whosever it is: it follows no link to it and waits for nothing.
func Open(path string) (*os.File, error) {
	f, fi, err := open(path)
	if err == nil && !fi.Mode().IsRegular() {
		f.Close()
		return nil, irregular(path)
	}
	return f, err
}

func open(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		if fi, lerr := os.Lstat(path); lerr == nil && fi.Mode()&fs.ModeSymlink != 0 {
			return nil, nil, linked(path)
		}
		return nil, nil, err
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, fi, nil
}

func irregular(path string) error {
	return &Error{Path: path, Why: "it is not a regular file", Mend: "ls -l " + Quote(path)}
}

func read(path string, most int64) ([]byte, error) {
	f, fi, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := Check(path, fi, Secret); err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, irregular(path)
	}
	b := bytes.NewBuffer(make([]byte, 0, min(fi.Size(), most)+bytes.MinRead))
	_, err = b.ReadFrom(io.LimitReader(f, most+1))
	if err == nil && int64(b.Len()) > most {
		err = errors.New("the file is too large")
	}
	return b.Bytes(), err
}

// WriteOnce creates a file that must not exist, by linking it into place whole.
func WriteOnce(path string, b []byte, mode os.FileMode) error {
	return whole(path, b, of(mode), os.Link)
}

// Replace puts a file in the place of another, or of none, whole or not at all.
func Replace(path string, b []byte, mode os.FileMode) error {
	return whole(path, b, of(mode), os.Rename)
}

// WriteOnceLike is WriteOnce of a file that nobody may read who may not read another one: it has
// that one's mode and group, and is no group's where this account cannot give it to that.
func WriteOnceLike(path string, b []byte, other fs.FileInfo) error {
	return whole(path, b, like(other), os.Link)
}

// ReplaceLike is Replace by such a file.
func ReplaceLike(path string, b []byte, other fs.FileInfo) error {
	return whole(path, b, like(other), os.Rename)
}

func of(mode os.FileMode) func(*os.File) error {
	return func(f *os.File) error { return f.Chmod(mode) }
}

func like(other fs.FileInfo) func(*os.File) error {
	return func(f *os.File) error {
		mode := other.Mode().Perm()
		now, err := f.Stat()
		if err == nil && group(now) != group(other) && f.Chown(-1, group(other)) != nil {
			mode &^= 0o070
		}
		return errors.Join(err, f.Chmod(mode))
	}
}

func whole(path string, b []byte, ready func(*os.File) error, place func(from, to string) error) error {
	return stream(path, ready, func(w io.Writer) error { _, err := w.Write(b); return err }, place)
}

// Stream is Replace for what is too large to be held twice.
func Stream(path string, mode os.FileMode, write func(io.Writer) error) error {
	return stream(path, of(mode), write, os.Rename)
}

// unfinished begins the name of a file that is not whole yet.
const unfinished = ".new-"

// Sweep removes from a directory what a process that was stopped did not finish, where
// that is so old. Who still writes it fails.
func Sweep(dir string, age time.Duration) error {
	left, err := os.ReadDir(dir) // a directory's name is no pattern
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, file := range left {
		path := filepath.Join(dir, file.Name())
		if !strings.HasPrefix(file.Name(), unfinished) {
			continue
		}
		if fi, serr := os.Lstat(path); serr == nil && time.Since(fi.ModTime()) < age {
			continue
		}
		if rerr := os.Remove(path); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = rerr
		}
	}
	return err
}

func stream(path string, ready func(*os.File) error, write func(io.Writer) error, place func(from, to string) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), unfinished+"*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if err = write(tmp); err == nil {
		err = ready(tmp)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = place(tmp.Name(), path)
	}
	return err
}

// Quote returns a path as a [Word], never taken for an option.
func Quote(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return Word(path)
}

// Word returns a text as one word of a POSIX shell (2024, for characters no terminal should
// get).
func Word(s string) string {
	plain, shown := s != "", utf8.ValidString(s)
	for _, r := range s {
		plain = plain && (r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("/._-+:@%,=", r))
		shown = shown && !text.Hidden(r, text.Unprinted)
	}
	switch {
	case plain:
		return s
	case shown:
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}
