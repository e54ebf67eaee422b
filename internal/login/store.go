// Package login signs a person in to a hosted server, and keeps what the server's
// authorization server gave: OAuth 2.1's authorization code with PKCE, as MCP asks for
// it, by the helpers of the official SDK.
//
// A server is not trusted with more than its own login. What it names to sign in at is
// reached over https, at public addresses unless the operator's own server is elsewhere,
// without redirects to other hosts (S13); the token goes to the URL it was asked for and
// nowhere else, so another URL under the same name has none. Tokens are sealed with a
// key that stands outside the state directory: a copy of that holds none. Who runs as
// this account can read both. With the same key a text is sealed where it stands, in a
// client's file, for one variable of one server.
package login

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/writ-project/writ/internal/private"
)

// keyFile is the sealing key, in the directory outside the state.
const keyFile = "logins.key"

// ErrNone says that nobody signed in to a server, at that URL.
var ErrNone = errors.New("nobody has signed in there")

// errSealed says that a login, or a text, cannot be opened: it was sealed with another
// key, for another server, or altered.
var errSealed = errors.New("what was sealed cannot be read")

// Store keeps the logins of one state directory.
type Store struct {
	dir string // of sealed files, one a server
	key string // file elsewhere
}

// Open returns the logins that are kept in a directory, whose key stands in another.
func Open(dir, outside string) *Store { return &Store{dir, filepath.Join(outside, keyFile)} }

func (s *Store) file(server string) string { return filepath.Join(s.dir, server) }

// grant is what is sealed: the token, and how it is renewed.
type grant struct {
	Version  int              `json:"v"`
	Client   string           `json:"client"`
	Secret   string           `json:"secret,omitzero"`
	TokenURL string           `json:"token_url"`
	Style    oauth2.AuthStyle `json:"style"`
	Scopes   []string         `json:"scopes,omitzero"`
	Access   string           `json:"access"`
	Refresh  string           `json:"refresh,omitzero"`
	Expiry   time.Time        `json:"expiry,omitzero"`
}

func (g *grant) config() *oauth2.Config {
	return &oauth2.Config{ClientID: g.Client, ClientSecret: g.Secret, Scopes: g.Scopes,
		Endpoint: oauth2.Endpoint{TokenURL: g.TokenURL, AuthStyle: g.Style}}
}

// taken puts another token into a grant; a server that gives no new refresh token means
// the old one (RFC 6749, section 6).
func (g grant) taken(t *oauth2.Token) *grant {
	if g.Access, g.Expiry = t.AccessToken, t.Expiry; t.RefreshToken != "" {
		g.Refresh = t.RefreshToken
	}
	return &g
}

// cipher returns the sealing cipher, and makes its key where there is none and that is
// allowed.
func (s *Store) cipher(make bool) (cipher.AEAD, error) {
	key, err := private.ReadFile(s.key)
	if errors.Is(err, fs.ErrNotExist) && make {
		fresh := [32]byte{}
		rand.Read(fresh[:])
		if err := private.WriteOnce(s.key, fresh[:], 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.New("the key of the logins cannot be written")
		}
		key, err = private.ReadFile(s.key)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errSealed
	case err != nil:
		return nil, err
	case len(key) != 32:
		return nil, errors.New("the key of the logins is not a key")
	}
	b, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(b)
}

// bound is what a login is sealed to: it opens for no other server and no other URL.
func bound(server, url string) []byte { return []byte("writ login v1\x00" + server + "\x00" + url) }

// sealedText begins a value that is sealed where it stands.
const sealedText = "writ-sealed:"

// Sealed reports whether a text is one that SealText made.
func Sealed(text string) bool { return strings.HasPrefix(text, sealedText) }

// boundText is what a value is sealed to.
func boundText(server, variable string) []byte {
	return []byte("writ credential v1\x00" + server + "\x00" + variable)
}

// SealText seals a text for one variable of one server, in a text that may stand where
// others read: it opens for nothing else, and with the key of this store alone.
func (s *Store) SealText(server, variable, text string) (string, error) {
	c, err := s.cipher(true)
	if err != nil {
		return "", err
	}
	return sealedText + base64.RawURLEncoding.EncodeToString(c.Seal(nil, nil, []byte(text), boundText(server, variable))), nil
}

// OpenText returns what SealText sealed for that variable of that server.
func (s *Store) OpenText(server, variable, sealed string) (string, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimPrefix(sealed, sealedText))
	if err != nil || !Sealed(sealed) {
		return "", errSealed
	}
	c, err := s.cipher(false)
	if err != nil {
		return "", err
	}
	plain, err := c.Open(nil, nil, b, boundText(server, variable))
	if err != nil {
		return "", errSealed
	}
	return string(plain), nil
}

func (s *Store) put(server, url string, g *grant) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return errors.New("the directory of the logins cannot be made")
	}
	c, err := s.cipher(true)
	if err != nil {
		return err
	}
	g.Version = 1
	plain, err := json.Marshal(g)
	if err != nil {
		return err
	}
	if err := private.Replace(s.file(server), c.Seal(nil, nil, plain, bound(server, url)), 0o600); err != nil {
		return errors.New("the login cannot be written")
	}
	return nil
}

// get returns the login for a server at a URL, or ErrNone.
func (s *Store) get(server, url string) (*grant, error) {
	sealed, err := private.ReadFile(s.file(server))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	c, err := s.cipher(false)
	if err != nil {
		return nil, err
	}
	plain, err := c.Open(nil, nil, sealed, bound(server, url))
	if err != nil {
		return nil, errSealed
	}
	g := &grant{}
	if err := json.Unmarshal(plain, g); err != nil || g.Version != 1 {
		return nil, errSealed
	}
	return g, nil
}

// Remove forgets the login of a server; it returns ErrNone where there is none. The
// server is not told: what it gave ends when it says.
func (s *Store) Remove(server string) error {
	err := os.Remove(s.file(server))
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNone
	}
	if err != nil {
		return errors.New("the login cannot be removed")
	}
	return nil
}
