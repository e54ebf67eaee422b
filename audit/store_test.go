package audit_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/writ-project/writ/audit"
)

func TestCheckAppend(t *testing.T) {
	seal := func(session string, n uint64) audit.Entry {
		kind := audit.KindDecision
		data := []byte(`{"status":"accepted"}`)
		if n == 1 {
			kind, data = audit.KindOpen, nil
		}
		e, err := audit.Seal(audit.Record{Kind: kind, Session: session, N: n, Time: time.Unix(0, 0), Data: data})
		if err != nil {
			t.Fatal(err)
		}
		if e.Session() != session || e.N() != n {
			t.Fatalf("%s/%d", e.Session(), e.N())
		}
		return e
	}
	for name, c := range map[string]struct {
		session  string
		expected uint64
		entries  []audit.Entry
		ok       bool
	}{
		"first":             {"s_a", 0, []audit.Entry{seal("s_a", 1)}, true},
		"two":               {"s_a", 1, []audit.Entry{seal("s_a", 2), seal("s_a", 3)}, true},
		"none":              {"s_a", 0, nil, false},
		"not sealed":        {"s_a", 0, make([]audit.Entry, 1), false},
		"another session":   {"s_a", 0, []audit.Entry{seal("s_b", 1)}, false},
		"another number":    {"s_a", 0, []audit.Entry{seal("s_a", 2)}, false},
		"L04 a gap":         {"s_a", 1, []audit.Entry{seal("s_a", 2), seal("s_a", 4)}, false},
		"M07 no session id": {"a", 0, []audit.Entry{seal("s_a", 1)}, false},
	} {
		if err := audit.CheckAppend(c.session, c.expected, c.entries); c.ok != (err == nil) || !c.ok && !errors.Is(err, audit.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckSession(t *testing.T) {
	zone := time.FixedZone("east", 3600)
	good := audit.Session{ID: "s_a", SecretDigest: audit.Sum(nil), Principal: "p", Endpoint: "stdio",
		Created: time.Date(2026, 11, 21, 1, 0, 0, 1999, zone)}
	got, err := audit.CheckSession(good)
	if err != nil || got.Created != time.Date(2026, 11, 21, 0, 0, 0, 1000, time.UTC) || !got.LastUsed.IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
	for name, spoil := range map[string]func(*audit.Session){
		"M07 id":              func(s *audit.Session) { s.ID = "s_a b" },
		"no secret":           func(s *audit.Session) { s.SecretDigest = audit.Digest{} },
		"long principal":      func(s *audit.Session) { s.Principal = strings.Repeat("p", 1025) },
		"long endpoint":       func(s *audit.Session) { s.Endpoint = strings.Repeat("e", 1025) },
		"principal not UTF-8": func(s *audit.Session) { s.Principal = "\xff" },
		"endpoint not UTF-8":  func(s *audit.Session) { s.Endpoint = "\xff" },
		"NUL in principal":    func(s *audit.Session) { s.Principal = "a\x00b" },
		"NUL in endpoint":     func(s *audit.Session) { s.Endpoint = "\x00" },
		"no time":             func(s *audit.Session) { s.Created = time.Time{} },
	} {
		bad := good
		spoil(&bad)
		if _, err := audit.CheckSession(bad); !errors.Is(err, audit.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestItemValue(t *testing.T) {
	it := audit.Item{Values: []audit.Value{{Name: "a", Bytes: []byte("x")}, {Name: "b"}}}
	if b, ok := it.Value("a"); !ok || string(b) != "x" {
		t.Errorf("%q, %v", b, ok)
	}
	if _, ok := it.Value("b"); !ok {
		t.Error("an empty value is there")
	}
	if _, ok := it.Value("c"); ok {
		t.Error("a value that never was")
	}
}
