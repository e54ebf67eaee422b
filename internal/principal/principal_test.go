package principal

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
)

// TestClients: a token is known from when it was given until its client is removed,
// by nothing but itself, and stands in no file.
func TestClients(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "clients")
	cs := In(dir)
	if all, err := cs.All(); err != nil || len(all) != 0 {
		t.Fatal(all, err)
	}
	kim, err := cs.Add("kim", Person, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	bot, err := cs.Add("bot", Agent, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cs.Add("kim", Operator, time.Now()); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	for _, bad := range []string{"", "Kim", "../kim", ".kim", "a/b", strings.Repeat("a", 33)} {
		if _, err := cs.Add(bad, Person, time.Now()); err == nil {
			t.Errorf("%q is a name", bad)
		}
	}
	if _, err := cs.Add("eve", "root", time.Now()); err == nil {
		t.Error("root is a role")
	}
	for token, want := range map[string]string{kim: "kim", bot: "bot"} {
		for _, scheme := range []string{"Bearer ", "bearer "} {
			if c, ok := cs.Bearer([]string{scheme + token}); !ok || c.Name != want {
				t.Errorf("%s: %v %v", want, c, ok)
			}
		}
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(kim, tokenPrefix))
	if err != nil {
		t.Fatal(err)
	}
	raw[0] ^= 1
	other := tokenPrefix + base64.RawURLEncoding.EncodeToString(raw)
	for _, bad := range [][]string{nil, {}, {""}, {kim}, {"Bearer"}, {"Bearer "}, {"Bearer  " + kim}, {"Bearer " + kim + " "}, {"Basic " + kim},
		{"Bearer " + kim, "Bearer " + kim}, {"Bearer " + kim[:len(kim)-1]}, {"Bearer " + kim + "A"}, {"Bearer " + other}, {"Bearer kim"}} {
		if c, ok := cs.Bearer(bad); ok {
			t.Errorf("%q is the token of %s", bad, c.Name)
		}
	}
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil || strings.Contains(string(b), kim) || strings.Contains(string(b), bot) {
			t.Errorf("%s: %v %s", f.Name(), err, b)
		}
	}

	// Whoever gets the name after it is another principal.
	was, _ := cs.Bearer([]string{"Bearer " + kim})
	if c, ok := cs.Of(was.Principal()); !ok || c.Name != "kim" || c.Role != Person {
		t.Error(c, ok)
	}
	if err := cs.Remove("kim"); err != nil {
		t.Fatal(err)
	}
	if err := cs.Remove("kim"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if _, ok := cs.Bearer([]string{"Bearer " + kim}); ok {
		t.Error("a client that was removed is known by its token")
	}
	if _, err := cs.Add("kim", Operator, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{was.Principal(), "loopback", "local:1000", "client:", "client:kim", "client:../bot/00000000", ""} {
		if c, ok := cs.Of(p); ok {
			t.Errorf("%s is %s", p, c.Name)
		}
	}
}

// TestStrict: what is not exactly a registration makes every token unknown.
func TestStrict(t *testing.T) {
	digest := strings.Repeat("ab", 32)
	for _, bad := range []string{
		``, `{}`, `[]`, `null`,
		`{"v":2,"role":"person","token":"` + digest + `","added":"2026-01-02T03:04:05Z"}`,
		`{"v":1,"role":"Person","token":"` + digest + `","added":"2026-01-02T03:04:05Z"}`,
		`{"v":1,"role":"person","token":"` + digest[2:] + `","added":"2026-01-02T03:04:05Z"}`,
		`{"v":1,"role":"person","token":"` + digest + `00","added":"2026-01-02T03:04:05Z"}`,
		`{"v":1,"role":"person","token":"` + strings.ToUpper(digest) + `","added":"2026-01-02T03:04:05Z"}`,
		`{"v":1,"role":"person","token":"` + digest + `","added":"yesterday"}`,
		`{"v":1,"role":"person","token":"` + digest + `"}`,
		`{"v":1,"role":"person","role":"operator","token":"` + digest + `","added":"2026-01-02T03:04:05Z"}`,
		`{"v":1,"role":"person","token":"` + digest + `","added":"2026-01-02T03:04:05Z","name":"kim"}`,
		`{"v":1,"Role":"person","token":"` + digest + `","added":"2026-01-02T03:04:05Z"}`,
	} {
		dir := t.TempDir()
		cs := In(dir)
		token, err := cs.Add("kim", Person, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "eve"), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := cs.All(); err == nil {
			t.Errorf("%s is a registration", bad)
		}
		if _, ok := cs.Bearer([]string{"Bearer " + token}); ok {
			t.Errorf("%s: the others are known", bad)
		}
	}
}

// TestRoles: what is nobody's role is worth nothing.
func TestRoles(t *testing.T) {
	for role, want := range map[Role]writ.Label{Person: writ.User, Operator: writ.Operator, Agent: 0, "": 0, "root": 0} {
		label, ok := role.Answers()
		if label != want || ok != (want != 0) || role.Says() != (want != 0) {
			t.Errorf("%q: %v %v %v", role, label, ok, role.Says())
		}
	}
}
