package memory_test

import (
	"fmt"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/memory"
)

// An agent records what it was told, proposes a claim, finds a second source,
// and meets a page that says otherwise.
func Example() {
	policy, _ := memory.Builtin("v1")
	state := memory.New()
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
	operate := func(command, args string) { keep(memory.Operate(state, c, command, []byte(args))) }
	propose := func(tool, payload string) {
		d := memory.Handle(state, c, writ.Proposal{ToolName: tool, Payload: writ.RawJSON(payload)})
		fmt.Print(tool, ": ", d.Outcome.Status)
		if r := d.Outcome.Rejection; r != nil {
			fmt.Print(" ", r.Code, " ", r.Reason)
		}
		for _, t := range d.Outcome.Transitions {
			fmt.Print(", ", t.Proposition, " is ", t.Next, " at ", t.Confidence)
		}
		fmt.Println()
		keep(d)
	}
	// saw is what the gateway captured and found the proposal's words in.
	saw := func(evidence string, label writ.Label, source string) {
		c.Captured = []memory.Captured{{Ref: evidence, Evidence: "s_1/" + evidence, Label: label, Source: source, Verbatim: true, Whole: true}}
	}

	operate(memory.CommandOpen, `{}`)
	operate(memory.CommandPredicate, `{"name":"works_at","single":true,"volatility":"low"}`)

	saw("ev1", writ.User, "user")
	propose(memory.ToolRecordObservation, `{"observation_id":"o1","raw_payload":"I work at Initech"}`)
	propose(memory.ToolEntity, `{"name":"Alice","entity_type":"self","observation_ids":["o1"]}`)
	propose(memory.ToolPropose, `{"text":"Alice works at Initech","about":["ent_4"],"observation_ids":["o1"],
		"structured_form":{"subject":"ent_4","predicate":"works_at","object":{"literal":"Initech"}}}`)

	saw("ev2", writ.System, "hr/lookup")
	propose(memory.ToolRecordObservation, `{"observation_id":"o2","raw_payload":"Initech"}`)
	propose(memory.ToolAttachSupport, `{"proposition_id":"prop_5","observation_ids":["o2"]}`)

	saw("ev3", writ.External, "web/fetch")
	propose(memory.ToolRecordObservation, `{"observation_id":"o3","raw_payload":"Alice has gone to Globex"}`)
	propose(memory.ToolPropose, `{"text":"Alice works at Globex","about":["ent_4"],"observation_ids":["o3"],
		"structured_form":{"subject":"ent_4","predicate":"works_at","object":{"literal":"Globex"}}}`)
	propose(memory.ToolAttachContra, `{"proposition_id":"prop_5","observation_ids":["o3"]}`)

	// No agent sets what only computation may set.
	propose(memory.ToolAttachSupport, `{"proposition_id":"prop_5","observation_ids":["o3"],"confidence":1}`)

	r := memory.Reader{State: state, Policy: policy, Principal: "alice", Now: c.Now}
	x, _ := r.Explain("prop_5")
	fmt.Println(x.Proposition.State, "by", x.Proposition.Rule, "disputed by", x.Proposition.Disputed)
	fmt.Println(x.Proposition.Object.Value, "vouches as", x.Proposition.Object.Label)
	for _, h := range x.Changes {
		fmt.Println("if", h.If+":", h.State)
	}

	// Output:
	// record_observation: accepted
	// create_or_link_entity_candidate: accepted
	// propose_proposition: transformed, prop_5 is provisional at 0.752
	// record_observation: accepted
	// attach_support: accepted, prop_5 is accepted at 0.88488
	// record_observation: accepted
	// propose_proposition: transformed
	// attach_contradiction: accepted
	// attach_support: rejected DIRECT_CANONICAL_WRITE_FORBIDDEN direct.canonical_write
	// accepted by transition.accepted.policy_threshold disputed by 1
	// Initech vouches as system
	// if one independent tool of level 2 contradicts it: contested
	// if two independent tools of level 2 contradict it: contested
	// if a test fails it, by a tool of level 2: rejected
}
