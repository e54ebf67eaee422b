// Package statedir is the directory in which Writ keeps its state: the names in
// it, whose its files must be, the log's key, where the log's head is kept a
// second time, and what of it no tool may name.
// The command line and package guard share one through it.
//
// It trusts root and the account it runs as (package private). Every error about
// a file that is not this account's own is a *private.Error, with the command
// that mends it.
package statedir

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/gateway/localdoor"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/snapshot"
	"github.com/writ-project/writ/internal/store/sqlite"
)

// The names in a state directory, beside those of the store and the local door.
const (
	KeyFile     = "log.key"  // the log's signing key, mode 0600
	PubFile     = "log.pub"  // its public half, for verifiers
	SessionsDir = "sessions" // secrets of sessions kept by name
	ClientsDir  = "clients"  // registered clients, by name (package principal)
	RunsDir     = "runs"     // events of `writ ask`
	LoginsDir   = "logins"   // sealed logins at servers (package login)
	// WitnessedDir has the newest head that each witness cosigned.
	WitnessedDir = "witnessed"
	// SnapshotsDir has what parts of the log come to, so that a start is fast; it may
	// be removed at any time (package snapshot).
	SnapshotsDir = "snapshots"
)

// SessionName is what a session may be kept under.
var SessionName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// kept are the names, and who may read each.
var kept = map[string]private.Use{
	KeyFile: private.Secret, PubFile: private.Shown,
	sqlite.FileName: private.Secret, sqlite.FileName + "-wal": private.Secret, sqlite.FileName + "-shm": private.Secret, sqlite.JournalName: private.Secret,
	SessionsDir: private.Secret, ClientsDir: private.Secret, RunsDir: private.Secret, LoginsDir: private.Secret, SnapshotsDir: private.Secret, WitnessedDir: private.Secret, localdoor.Dir: private.Secret,
}

// Check refuses a state directory of which others may read or write anything,
// or in which a link stands for a file (attacks C06, I11 to I13). What is read
// as a secret is judged once more when it is opened.
func Check(dir string) error {
	if err := private.At(dir, private.Secret); err != nil {
		return err
	}
	use := maps.Clone(kept)
	sessions, _ := os.ReadDir(filepath.Join(dir, SessionsDir))
	for _, s := range sessions {
		if SessionName.MatchString(s.Name()) {
			use[filepath.Join(SessionsDir, s.Name())] = private.Secret
		}
	}
	for _, name := range slices.Sorted(maps.Keys(use)) {
		if err := private.At(filepath.Join(dir, name), use[name]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Own returns the paths of a state directory that no tool may name (R34), and
// with it those of this process, whose memory and environment hold what it
// holds.
func Own(dir string) []string {
	own := Named(dir)
	if runtime.GOOS == "linux" {
		own = append(own, fmt.Sprintf("/proc/%d", os.Getpid()), "/proc/self", "/proc/thread-self", "/dev/fd")
	}
	return own
}

// Named returns a file's absolute path, and the one it leads to, or will once it is there.
func Named(file string) (names []string) {
	if abs, err := filepath.Abs(file); err == nil {
		names = append(names, abs)
		if real := leadsTo(abs, mostLinks); real != abs {
			names = append(names, real)
		}
	}
	return names
}

const mostLinks = 40 // to what is not there

// leadsTo resolves the links of a path as far as it is there.
func leadsTo(abs string, links int) string {
	rest := ""
	for dir := abs; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if to, err := os.Readlink(dir); err == nil && links > 0 {
			if !filepath.IsAbs(to) {
				to = filepath.Join(leadsTo(filepath.Dir(dir), links-1), to)
			}
			return leadsTo(filepath.Join(to, rest), links-1)
		}
		if dir == filepath.Dir(dir) {
			return abs
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// Snapshots returns the snapshots of a state directory, nil where its key cannot be
// read: then everything is as it is without them, and slower to start.
func Snapshots(dir string) *snapshot.Dir {
	key, err := private.ReadFile(filepath.Join(dir, KeyFile))
	if err != nil {
		return nil
	}
	s, err := snapshot.Open(filepath.Join(dir, SnapshotsDir), key)
	if err != nil {
		return nil
	}
	return s
}

// ErrNoKey says that what stands in KeyFile is not a key.
var ErrNoKey = errors.New("the log's key is not a key")

// ErrKeyLost says that there is a log, and KeyFile is not there any more: another one would not
// be the one that signed it.
var ErrKeyLost = errors.New("log.key is missing, and the log there is signed by it; nothing was made in its place")

// Key reads the log's key pair, or makes it where there is no log either. Of two processes that make it at
// the same time one wins and both use its key.
func Key(dir string) (note.Signer, note.Verifier, error) {
	path := filepath.Join(dir, KeyFile)
	_, log := os.Lstat(filepath.Join(dir, sqlite.FileName)) // which is made after the key
	skey, err := private.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && log == nil {
		return nil, nil, ErrKeyLost
	}
	if errors.Is(err, fs.ErrNotExist) {
		var id [5]byte
		if _, err := rand.Read(id[:]); err != nil {
			return nil, nil, errors.New("no randomness")
		}
		name := "writ-" + strings.ToLower(base32.StdEncoding.EncodeToString(id[:]))
		s, _, err := audit.GenerateKey(rand.Reader, name)
		if err != nil {
			return nil, nil, errors.New("the log's key cannot be made")
		}
		if err := private.WriteOnce(path, []byte(s+"\n"), 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, nil, fmt.Errorf("the log's key %q cannot be written", path)
		}
		skey, err = private.ReadFile(path)
		if err != nil {
			return nil, nil, unread(err)
		}
	} else if err != nil {
		return nil, nil, unread(err)
	}
	signer, verifier, vkey, err := ParseKey(skey)
	if err != nil {
		return nil, nil, err
	}
	// The public half is for whoever verifies elsewhere; it is made again when
	// it is missing.
	public := filepath.Join(dir, PubFile)
	if _, err := os.Lstat(public); errors.Is(err, fs.ErrNotExist) {
		if err := private.WriteOnce(public, []byte(vkey+"\n"), 0o644); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, nil, errors.New("the log's public key cannot be written")
		}
	}
	return signer, verifier, nil
}

func unread(err error) error {
	if _, ok := errors.AsType[*private.Error](err); ok {
		return err
	}
	return errors.New("the log's key cannot be read")
}

// ParseKey takes what stands in KeyFile apart; vkey is what stands in PubFile.
func ParseKey(skey []byte) (signer note.Signer, verifier note.Verifier, vkey string, err error) {
	text := strings.TrimSpace(string(skey))
	if signer, err = note.NewSigner(text); err == nil {
		vkey, err = publicKey(text, signer.Name())
	}
	if err == nil {
		verifier, err = note.NewVerifier(vkey)
	}
	if err != nil || verifier.KeyHash() != signer.KeyHash() {
		return nil, nil, "", ErrNoKey
	}
	return signer, verifier, vkey, nil
}

// publicKey derives the verifier key from an Ed25519 signer key in the
// encoding of package note: PRIVATE+KEY+name+hash+base64(0x01 seed).
func publicKey(skey, name string) (string, error) {
	parts := strings.SplitN(skey, "+", 5)
	if len(parts) != 5 {
		return "", ErrNoKey
	}
	b, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil || len(b) != 1+ed25519.SeedSize {
		return "", ErrNoKey
	}
	pub := ed25519.NewKeyFromSeed(b[1:]).Public().(ed25519.PublicKey)
	return note.NewEd25519VerifierKey(name, pub)
}

// HeadsDir is where the head of the log of a state directory is kept a second
// time: on this machine, for this user, and not where a backup or a copy of the
// state takes it along; "" where there is no such place.
func HeadsDir(state string) string {
	var bases []string
	if x := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(x) {
		bases = append(bases, x)
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		if u, uerr := user.Current(); uerr == nil { // a service may have no HOME
			home, err = u.HomeDir, nil
		}
	}
	if err == nil && filepath.IsAbs(home) {
		bases = append(bases, filepath.Join(home, ".local", "share"))
	}
	bases = append(bases, filepath.Join(os.TempDir(), fmt.Sprintf("writ-%d", os.Getuid())))
	for _, base := range bases {
		dir := filepath.Join(base, "writ", "heads")
		if rel, err := filepath.Rel(state, dir); err == nil && filepath.IsLocal(rel) {
			continue // it would be copied with the state
		}
		if os.MkdirAll(dir, 0o700) == nil && writable(dir) {
			return dir
		}
	}
	return ""
}

func writable(dir string) bool {
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return false
	}
	f.Close()
	return os.Remove(f.Name()) == nil
}
