//go:build unix

package private

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

const nobody = 65534

// TestCheck: each combination of mode, owner and use, against what the package
// comment says (C06; I11 loose modes, I13 another account's).
func TestCheck(t *testing.T) {
	const me, root = -1, 0
	for _, c := range []struct {
		name  string
		mode  fs.FileMode
		owner int
		use   Use
		dir   bool
		why   string // "" passes
		mend  string // of the command; PATH stands for the path
	}{
		{name: "a key", mode: 0o600, owner: me, use: Secret},
		{name: "a key nobody writes", mode: 0o400, owner: me, use: Secret},
		{name: "a key the group reads", mode: 0o640, owner: me, use: Secret, why: "read", mend: "chmod 600 PATH"},
		{name: "a key all read", mode: 0o604, owner: me, use: Secret, why: "read", mend: "chmod 600 PATH"},
		{name: "a key the group writes", mode: 0o620, owner: me, use: Secret, why: "write", mend: "chmod 600 PATH"},
		{name: "a key all execute", mode: 0o601, owner: me, use: Secret, why: "read", mend: "chmod 600 PATH"},
		{name: "a directory", mode: 0o700, owner: me, use: Secret, dir: true},
		{name: "a directory all enter", mode: 0o711, owner: me, use: Secret, dir: true, why: "read", mend: "chmod 700 PATH"},
		{name: "a directory all write, sticky", mode: 0o777 | fs.ModeSticky, owner: me, use: Secret, dir: true, why: "write", mend: "chmod 700 PATH"},
		{name: "a public key", mode: 0o644, owner: me, use: Shown},
		{name: "a public key the group writes", mode: 0o664, owner: me, use: Shown, why: "write", mend: "chmod go-w PATH"},
		{name: "a policy", mode: 0o644, owner: me, use: Steering},
		{name: "a policy the group writes", mode: 0o664, owner: me, use: Steering, why: "write", mend: "chmod go-w PATH"},
		{name: "another's key", mode: 0o600, owner: nobody, use: Secret, why: "belongs"},
		{name: "another's public key", mode: 0o644, owner: nobody, use: Shown, why: "belongs"},
		{name: "another's policy", mode: 0o644, owner: nobody, use: Steering, why: "belongs", mend: "sudo chown 0 PATH"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "it is 'here'")
			if c.dir {
				os.Mkdir(path, 0o700)
			} else {
				os.WriteFile(path, []byte("x"), 0o600)
			}
			if c.owner != me {
				if os.Getuid() != root {
					t.Skip("only root gives a file to another account")
				}
				if err := os.Chown(path, c.owner, -1); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			err := At(path, c.use)
			var e *Error
			switch {
			case c.why == "":
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			case !errors.As(err, &e) || !strings.Contains(e.Why, c.why):
				t.Fatalf("got %v, want one that says %q", err, c.why)
			case c.mend != "" && e.Mend != strings.Replace(c.mend, "PATH", Quote(path), 1):
				t.Fatalf("the command is %q", e.Mend)
			}
			if !strings.HasPrefix(e.Mend, "chmod") {
				return
			}
			// The command does what it is said to do.
			if out, err := exec.Command("sh", "-c", e.Mend).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v %s", e.Mend, err, out)
			}
			if err := At(path, c.use); err != nil {
				t.Errorf("after %s: %v", e.Mend, err)
			}
		})
	}
}

// TestRootsPolicy: what root owns may steer whoever runs, and is nobody's secret.
func TestRootsPolicy(t *testing.T) {
	fi, err := os.Stat("/")
	if err != nil {
		t.Fatal(err)
	}
	if uid, _ := owner(fi); uid != 0 || fi.Mode().Perm()&0o022 != 0 {
		t.Skip("/ is not root's here")
	}
	if err := Check("/", fi, Steering); err != nil {
		t.Error(err)
	}
	if os.Getuid() != 0 && Check("/", fi, Secret) == nil {
		t.Error("root's directory is taken for one's own")
	}
}

// TestLinks: no link stands in a secret's place (I12), and the command puts the
// thing itself there.
func TestLinks(t *testing.T) {
	for _, dir := range []bool{false, true} {
		at := t.TempDir()
		real, link := filepath.Join(at, "real"), filepath.Join(at, "-link; rm x")
		if dir {
			os.Mkdir(real, 0o700)
		} else {
			os.WriteFile(real, []byte("secret"), 0o600)
		}
		if err := os.Symlink(real, link); err != nil {
			t.Fatal(err)
		}
		var e *Error
		if !errors.As(At(link, Secret), &e) || !strings.Contains(e.Why, "link") {
			t.Fatalf("a link is not refused: %v", e)
		}
		if _, err := ReadFile(link); !errors.As(err, &e) || !strings.Contains(e.Why, "link") {
			t.Fatalf("a link is read: %v", err)
		}
		if out, err := exec.Command("sh", "-c", e.Mend).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", e.Mend, err, out)
		}
		if err := At(link, Secret); err != nil {
			t.Errorf("after %s: %v", e.Mend, err)
		}
	}
	// One that leads nowhere is no file that is not there yet.
	link := filepath.Join(t.TempDir(), "link")
	os.Symlink("nowhere", link)
	var e *Error
	if _, err := ReadFile(link); !errors.As(err, &e) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dangling link: %v", err)
	}
}

// TestReadFile: what is no secret's file is refused, and never waited for (I17).
func TestReadFile(t *testing.T) {
	at := t.TempDir()
	path := filepath.Join(at, "f")
	if _, err := ReadFile(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
	os.WriteFile(path, []byte("secret\n"), 0o600)
	if b, err := ReadFile(path); err != nil || string(b) != "secret\n" {
		t.Errorf("%q %v", b, err)
	}
	os.Chmod(path, 0o644)
	var e *Error
	if _, err := ReadFile(path); !errors.As(err, &e) {
		t.Errorf("a loose file: %v", err)
	}
	os.WriteFile(path, bytes.Repeat([]byte("x"), maxSecret+1), 0o600)
	os.Chmod(path, 0o600)
	if _, err := ReadFile(path); err == nil {
		t.Error("a large file is read")
	}
	os.Chmod(at, 0o700)
	if _, err := ReadFile(at); !errors.As(err, &e) {
		t.Errorf("a directory: %v", err)
	}
	fifo := filepath.Join(at, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip("no FIFO here: ", err)
	}
	if _, err := ReadFile(fifo); !errors.As(err, &e) {
		t.Errorf("a FIFO: %v", err)
	}
}

// TestQuote: whatever a name holds, the shell gives it back as one word that is
// no option, and no character of it reaches the terminal that is not shown (I16).
func TestQuote(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	rapid.Check(t, func(t *rapid.T) {
		var name string
		if rapid.Bool().Draw(t, "bytes") {
			name = string(rapid.SliceOfN(rapid.ByteRange(1, 255), 1, 12).Draw(t, "b"))
		} else {
			name = rapid.StringOfN(rapid.RuneFrom([]rune("a/.-_ ~$`\\\"'!*?[]{}();&|<>#=\n\t\x1b\u202eü字")), 1, 12, -1).Draw(t, "s")
		}
		q := Quote(name)
		for _, r := range q {
			if r < ' ' || r == 0x7f || r == '\u202e' {
				t.Fatalf("%q is shown as %q", name, q)
			}
		}
		out, err := exec.Command(bash, "--norc", "-c", "printf %s "+q+"; printf '|%s' $#").Output()
		want := name
		if name[0] == '-' {
			want = "./" + name
		}
		if err != nil || string(out) != want+"|0" {
			t.Fatalf("%q, quoted %s, is %q (%v)", name, q, out, err)
		}
	})
}

// TestZeroUse: who forgets to say what a file is for gets the strictest answer.
func TestZeroUse(t *testing.T) {
	var u Use
	if u != Secret {
		t.Error("the zero use is not the strictest")
	}
}

// TestLike: what is put in a file's place, or kept of it, is read by nobody who could not read
// that: it is of the same group, or of none where this account cannot give it to that.
func TestLike(t *testing.T) {
	dir := t.TempDir()
	gids, _ := os.Getgroups()
	for i, gid := range append(gids, os.Getegid(), 4242) {
		file := filepath.Join(dir, strconv.Itoa(i))
		if err := WriteOnce(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		fi, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o600)
		if os.Chown(file, -1, gid) == nil {
			mode = 0o640
		}
		other := ofGroup{fi, gid}
		if err := errors.Join(ReplaceLike(file, []byte("x"), other), WriteOnceLike(file+"-copy", []byte("x"), other)); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{file, file + "-copy"} {
			if fi, err := os.Stat(path); err != nil || fi.Mode() != mode || mode == 0o640 && group(fi) != gid {
				t.Errorf("like one of group %d it is %v of %d: %v", gid, fi.Mode(), group(fi), err)
			}
		}
	}
}

// ofGroup is a file that its group reads.
type ofGroup struct {
	fs.FileInfo
	gid int
}

func (ofGroup) Mode() fs.FileMode { return 0o640 }
func (o ofGroup) Sys() any        { return &syscall.Stat_t{Gid: uint32(o.gid)} }
