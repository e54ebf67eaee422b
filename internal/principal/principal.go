// Package principal is who calls, where the operator told Writ: each client he
// registered, with a role and a bearer token of its own. Who shows no token is an
// agent, and so is whoever the transport knows by other means.
//
// A role says what reaches Writ through a client beside its agent's calls:
//
//	agent     nothing
//	person    its person's answers to questions, and his words
//	operator  the same, and the answers count as the operator's
//
// A client is a file in one directory, named as the client: version, role, the
// SHA-256 of its token, and when it was added. A token is 256 random bits, so that
// the digest says nothing of it; Writ keeps no token. The directory is read for each
// token, so that a client that is removed is nobody from then on. What cannot be
// read, or is not exactly such a file, makes every token unknown.
package principal

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/strictjson"
)

// Role is what a client is registered as. The zero Role is none.
type Role string

// The roles.
const (
	Agent    Role = "agent"
	Person   Role = "person"
	Operator Role = "operator"
)

// Roles lists them. Callers do not change it.
var Roles = []Role{Agent, Person, Operator}

// Answers returns what an answer is worth that came through a client of the role;
// ok is false where it counts for nothing.
func (r Role) Answers() (label writ.Label, ok bool) {
	switch r {
	case Person:
		return writ.User, true
	case Operator:
		return writ.Operator, true
	}
	return 0, false
}

// Says reports whether a client of the role may bring the user's own words.
func (r Role) Says() bool { return r == Person || r == Operator }

// Name is what a client may be called.
var Name = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,31}$`)

// Client is one that the operator registered.
type Client struct {
	Name  string
	Role  Role
	Added time.Time

	digest [sha256.Size]byte
}

// Principal is what sessions are bound to: another registration under the same
// name is another principal.
func (c *Client) Principal() string {
	return prefix + c.Name + "/" + hex.EncodeToString(c.digest[:4])
}

const prefix = "client:"

// Errors of Add and Remove.
var (
	ErrExists  = errors.New("there is a client of that name")
	ErrUnknown = errors.New("there is no client of that name")
	ErrMany    = errors.New("there are as many clients as there may be")
)

// MaxClients is how many there may be: it bounds what is looked through for each token.
const MaxClients = 100

// Clients are those registered in one directory.
type Clients struct{ dir string }

// In returns the clients of a directory, which need not exist: then there are none.
func In(dir string) Clients { return Clients{dir} }

// Add registers a client and returns its token, which is kept nowhere.
func (cs Clients) Add(name string, role Role, now time.Time) (token string, err error) {
	if !Name.MatchString(name) || !slices.Contains(Roles, role) {
		return "", errors.New("a client has a name and a role")
	}
	all, err := cs.All()
	switch {
	case err != nil:
		return "", err
	case len(all) >= MaxClients:
		return "", ErrMany
	}
	if err := os.MkdirAll(cs.dir, 0o700); err != nil {
		return "", err
	}
	var secret [tokenBytes]byte
	rand.Read(secret[:])
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	digest := sha256.Sum256([]byte(token))
	b := fmt.Appendf(nil, `{"v":1,"role":%q,"token":"%x","added":%q}`+"\n", role, digest, now.UTC().Format(time.RFC3339))
	if err := private.WriteOnce(filepath.Join(cs.dir, name), b, 0o600); errors.Is(err, fs.ErrExist) {
		return "", ErrExists
	} else if err != nil {
		return "", err
	}
	return token, nil
}

// Remove ends a registration: its token is unknown from now on.
func (cs Clients) Remove(name string) error {
	if !Name.MatchString(name) {
		return ErrUnknown
	}
	err := os.Remove(filepath.Join(cs.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return ErrUnknown
	}
	return err
}

// All lists the clients by name. An error names the file that is not one's.
func (cs Clients) All() ([]Client, error) {
	files, err := os.ReadDir(cs.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var out []Client
	for _, f := range files {
		if !Name.MatchString(f.Name()) {
			continue // one that is being written
		}
		c, err := cs.read(f.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		} else if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func (cs Clients) read(name string) (Client, error) {
	path := filepath.Join(cs.dir, name)
	b, err := private.ReadFile(path)
	if err != nil {
		return Client{}, err
	}
	c, ok := parse(b)
	if !ok {
		return Client{}, &private.Error{Path: path, Why: "it is no registration of a client", Mend: "rm " + private.Quote(path)}
	}
	c.Name = name
	return c, nil
}

// parse reads a registration: exactly its four members, each in its one form.
func parse(b []byte) (c Client, ok bool) {
	v, err := strictjson.Parse(bytes.TrimSpace(b), strictjson.Limits{Bytes: 1024, Depth: 2, Leaves: 8, Number: 8})
	if err != nil || v.Kind() != strictjson.Object || v.Len() != 4 || string(v.Get("v").Raw()) != "1" {
		return c, false
	}
	role, _ := v.Get("role").Text()
	digest, _ := v.Get("token").Text()
	added, _ := v.Get("added").Text()
	c.Role = Role(role)
	n, err := hex.Decode(c.digest[:], []byte(digest[:min(len(digest), 2*sha256.Size)]))
	if err != nil || n != sha256.Size || len(digest) != 2*sha256.Size || digest != strings.ToLower(digest) {
		return c, false
	}
	c.Added, err = time.Parse(time.RFC3339, added)
	return c, err == nil && slices.Contains(Roles, c.Role)
}

const (
	tokenPrefix = "writ_"
	tokenBytes  = 32
)

// Bearer returns whose token an Authorization header shows; ok is false where it
// is of another form, or of nobody. Every client is compared with, each in constant
// time.
func (cs Clients) Bearer(header []string) (who Client, ok bool) {
	if len(header) != 1 {
		return Client{}, false
	}
	scheme, token, _ := strings.Cut(header[0], " ")
	secret, isToken := strings.CutPrefix(token, tokenPrefix)
	raw, err := base64.RawURLEncoding.Strict().DecodeString(secret)
	if !strings.EqualFold(scheme, "Bearer") || !isToken || err != nil || len(raw) != tokenBytes {
		return Client{}, false
	}
	all, err := cs.All()
	if err != nil {
		return Client{}, false
	}
	digest := sha256.Sum256([]byte(token))
	for _, c := range all {
		if subtle.ConstantTimeCompare(digest[:], c.digest[:]) == 1 {
			who, ok = c, true
		}
	}
	return who, ok
}

// Of returns the client that a principal is, as long as it is registered.
func (cs Clients) Of(principal string) (who Client, ok bool) {
	name, isClient := strings.CutPrefix(principal, prefix)
	name, _, _ = strings.Cut(name, "/")
	if !isClient || !Name.MatchString(name) {
		return Client{}, false
	}
	c, err := cs.read(name)
	return c, err == nil && c.Principal() == principal
}
