package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/memory"
)

// TestMemoryRuleWords: every rule id of the memory is said in words.
func TestMemoryRuleWords(t *testing.T) {
	src, err := os.ReadFile("../../memory/belief.go")
	if err != nil {
		t.Fatal(err)
	}
	ids := regexp.MustCompile(`Rule = "([^"]+)"`).FindAllStringSubmatch(string(src), -1)
	if len(ids) < 6 {
		t.Fatalf("%d rules found", len(ids))
	}
	for _, id := range ids {
		if rules[memory.Rule(id[1])] == "" {
			t.Errorf("%s has no words", id[1])
		}
	}
	if len(ids) != len(rules) {
		t.Errorf("%d rules, %d words", len(ids), len(rules))
	}
}

// TestMemoryPrintData: what a terminal would obey is escaped in JSON, and the
// JSON stays what it is (T05).
func TestMemoryPrintData(t *testing.T) {
	var b bytes.Buffer
	if err := cli.PrintJSON(&b, map[string]string{"a": "\u202eevil\u009b31m\x1b\U000e0041\ufe0f<ok>"}); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.String() {
		if r > 0x7e || r < ' ' && r != '\n' {
			t.Errorf("%U is printed", r)
		}
	}
	if !strings.Contains(b.String(), `<ok>`) || !strings.Contains(b.String(), `\udb40\udc41`) {
		t.Error(b.String())
	}
}

// TestMemoryEarlierPolicy: a namespace under a policy of an earlier form is read,
// and recorded in only when another is put in force.
func TestMemoryEarlierPolicy(t *testing.T) {
	s := seed(t, plain)
	earlier := []byte("version: 1\nprofile: v1\n")
	hash, err := s.st.PutBlob(t.Context(), earlier)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().UTC().Truncate(time.Microsecond)
	data, err := (&memory.Event{V: 3, N: 1, Kind: memory.KindOpen, At: memory.InstantOf(at), Namespace: "default", Policy: hash.String(),
		Mode: memory.Hardened, Principal: "operator", Tool: "operator.open", Status: writ.Accepted}).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	log := memoryserver.LogOf("default")
	entry, err := audit.Seal(audit.Record{Kind: audit.KindOpen, Session: log, N: 1, Time: at, Data: data})
	if err == nil {
		_, err = s.st.Append(t.Context(), log, 0, []audit.Entry{entry})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.must(cli.ExitOK, "memory", "search", "anything")
	if out := s.must(cli.ExitOK, "memory", "policy", "show", "--source"); out != string(earlier) {
		t.Error(out)
	}
	add := []string{"memory", "predicate", "add", "phone", "--many"}
	for _, args := range [][]string{add, {"memory", "distrust", "a", "--since", "2026-01-01", "--preview"}} {
		if out := s.must(cli.ExitData, args...); !strings.Contains(out, "writ memory policy adopt") {
			t.Error(out)
		}
	}
	s.must(cli.ExitUsage, "memory", "policy", "adopt", "--mode", "local")
	s.must(cli.ExitOK, "memory", "policy", "adopt", "--policy", builtInPolicy)
	s.must(cli.ExitOK, add...)
}
