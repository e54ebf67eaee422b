package memory_test

import (
	"fmt"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/memory"
)

// An agent keeps what its user said, meets a page that says otherwise, and a user
// who changed his mind.
func Example() {
	policy, state := memory.Builtin(), memory.New()
	c := memory.Context{
		Policy: policy, Namespace: "home", Mode: memory.Hardened,
		Principal: "alice", Session: "s_1", Task: "t1",
		Now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC),
	}
	// keep stands for writing the event, with its value beside it, and then
	// applying it.
	keep := func(d memory.Decision) {
		if err := state.Apply(d.Event, d.Value); err != nil {
			panic(err)
		}
	}
	keep(memory.Operate(state, c, memory.CommandOpen, []byte(`{}`)))
	remember := func(payload string) {
		d := memory.Handle(state, c, writ.Proposal{ToolName: memory.ToolRemember, Payload: writ.RawJSON(payload)})
		if r := d.Outcome.Rejection; r != nil {
			fmt.Println(r.Code, r.Reason)
		} else {
			fmt.Println(d.Outcome.Kept.ID, d.Outcome.Kept.Trust+":", d.Outcome.Kept.Why)
		}
		keep(d)
	}
	// saw is the sentence of this session that the gateway found the fact in, and
	// the value in it.
	saw := func(evidence string, label writ.Label, source, sentence, value string) {
		c.Captured = []memory.Captured{{Ref: evidence, Evidence: "s_1/" + evidence, Label: label, Source: source, Verbatim: true, Whole: true,
			Text: sentence, Value: []byte(`"` + value + `"`)}}
	}

	saw("ev1", writ.User, "user", "I work at Initech.", "Initech")
	remember(`{"text":"works at Initech","about":"me: work"}`)
	saw("ev2", writ.External, "web/fetch", "Alice's work is at Globex now.", "Globex")
	remember(`{"text":"work at Globex","about":"Alice: work"}`)
	saw("ev3", writ.User, "user", "By now I work at Hooli.", "Hooli")
	remember(`{"text":"works at Hooli","about":"me: work"}`)

	// What nobody said is a note, and no agent sets what only computation may set.
	c.Captured = nil
	remember(`{"text":"She would like to work at Globex"}`)
	remember(`{"text":"works at Globex","about":"me: work","state":"established"}`)

	r := memory.Reader{State: state, Principal: "alice", Now: c.Now}
	found := r.Recall(memory.Ask{Query: "work", About: "me"})
	for _, it := range found.Items {
		fmt.Printf("%s: %q, so %s %s\n", it.Trust, it.Text, it.About, it.Value)
	}
	for _, h := range found.HeldBack {
		fmt.Println("held back:", h.Count, h.Reason)
	}

	// Output:
	// prop_2 established: the user said so
	// prop_3 reported: web/fetch says so, and anybody may have written that
	// prop_4 established: the user said so; it replaces prop_2: Initech
	// obs_5 unverified: nothing this session saw says so: it is your note; the user's or a trusted tool's own words would establish it
	// DIRECT_CANONICAL_WRITE_FORBIDDEN direct.canonical_write
	// established: "By now I work at Hooli.", so user: work Hooli
	// replaced: "I work at Initech.", so user: work Initech
}
