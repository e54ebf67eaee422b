package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestRecordedOlder: of more sessions than are read the newest are, and the others are
// counted.
func TestRecordedOlder(t *testing.T) {
	state := ownState(t)
	for _, session := range []string{"one", "two", "three"} {
		if out, err := exec.Command("writ", "call", "--state", state, "--session", session, "search_tickets", `{"query":""}`).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	st, err := openForReading(state)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	all, left, err := recorded(t.Context(), state, st, time.Time{}, 2)
	if err != nil || len(all) != 2 || left != (leftOut{Older: 1}) {
		t.Errorf("%d sessions, left out %+v, %v", len(all), left, err)
	}
	var said strings.Builder
	left.print(&said, 0)
	if said.String() != "sessions left out: 1 older than the newest 100\n" {
		t.Error(said.String())
	}
}
