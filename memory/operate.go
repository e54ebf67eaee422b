package memory

import (
	"slices"

	writ "github.com/writ-project/writ"
)

// The operator's commands. No tool of a model reaches them.
const (
	CommandOpen       = "open"      // begin a namespace
	CommandPolicy     = "policy"    // put the context's policy and mode in force
	CommandSource     = "source"    // register a source
	CommandSuspend    = "suspend"   // refuse a source, or take it back
	CommandPredicate  = "predicate" // declare a predicate
	CommandRule       = "rule"      // rule on a proposition: uphold or refute it
	CommandMerge      = "merge"     // join two entities
	CommandUnmerge    = "unmerge"   // undo that
	CommandErase      = "erase"     // erase what was observed, with what came of it
	CommandDistrust   = "distrust"  // retract what a source said since some time
	CommandCancelTest = "cancel_test"
)

// commands are published nowhere.
var commands = []tool{
	{CommandOpen, "", nil, (*judge).inForce},
	{CommandPolicy, "", nil, (*judge).inForce},
	{CommandSource, "", []field{registered,
		{name: "class", kind: kindWord, required: true, enum: []string{"operator", "direct_user", "tool_internal", "user_attested", "tool_external", "document", "web", "peer_agent", "agent_inference", "import"}},
	}, (*judge).source},
	{CommandSuspend, "", []field{registered, {name: "suspended", kind: kindBool, required: true}}, (*judge).suspend},
	{CommandPredicate, "", []field{
		{name: "name", kind: kindSlug, required: true},
		{name: "aliases", kind: kindTexts, max: 20},
		{name: "single", kind: kindBool},
	}, (*judge).predicate},
	{CommandRule, "", []field{claimID, {name: "ruling", kind: kindWord, required: true, enum: []string{"uphold", "refute"}}}, (*judge).rule},
	{CommandMerge, "", fromInto, (*judge).merge},
	{CommandUnmerge, "", fromInto, (*judge).merge},
	{CommandErase, "", []field{
		{name: "observation_ids", kind: kindObs, min: 1, max: 1000},
		{name: "source", kind: kindText, min: 1, max: 256},
		{name: "session", kind: kindText, min: 1, max: 128},
		{name: "principal", kind: kindText, min: 1, max: 256},
		{name: "reason", kind: kindSlug, required: true},
	}, (*judge).erase},
	{CommandDistrust, "", []field{
		{name: "source", kind: kindText, required: true, min: 1, max: 256},
		{name: "since", kind: kindTime, required: true},
	}, (*judge).distrust},
	{CommandCancelTest, "", []field{testID}, (*judge).cancelTest},
}

var (
	registered = field{name: "source_id", kind: kindText, required: true, min: 1, max: 256}
	fromInto   = []field{
		{name: "from", kind: kindID, required: true, enum: []string{"ent"}},
		{name: "into", kind: kindID, required: true, enum: []string{"ent"}},
	}
)

// Operate decides one operator's command, as Handle does a proposal. The
// context's principal is the operator, whom the caller has authenticated.
func Operate(s *State, c Context, command string, args []byte) Decision {
	e := &Event{V: EventVersion, N: s.head + 1, Kind: KindCommand, At: recorded(c.Now), Namespace: c.Namespace, Mode: c.Mode, Principal: c.Principal}
	if command == CommandOpen {
		e.Kind = KindOpen
	}
	if c.Policy != nil {
		e.Policy = c.Policy.hash
	}
	j := &judge{s: s, c: c, e: e, t: called(commands, command)}
	if j.t != nil {
		e.Tool = "operator." + command
	}
	p := writ.Proposal{ToolName: "operator." + command, Payload: args}
	if r := j.command(args); r != nil {
		if e.N == 1 {
			return Decision{Outcome: Outcome{Outcome: writ.Outcome{Status: writ.Rejected, Rejection: r.rejection()}}.filled()}
		}
		e.Kind, e.Namespace, e.Policy, e.Mode = KindCommand, s.namespace, s.policy, s.mode
		return j.rejected(r, p)
	}
	if !e.fits() {
		e.Kind = KindCommand
		return j.rejected(refuse("", writ.CommandState, "a smaller selection, for one event: a session, or at most 1000 observations by their ids"), p)
	}
	return j.accepted(envelope(p.ToolName, j.payload()))
}

func (j *judge) command(args []byte) *refusal {
	if j.t == nil {
		return refuse("", writ.CommandUnknown, "one of the operator's commands")
	}
	canonical, r := canonicalObject(args, "arguments that are an object")
	if r == nil {
		r = j.read(canonical, j.t.fields)
	}
	if r != nil {
		return r
	}
	c := &j.c
	begins := j.t.name == CommandOpen
	if c.Policy == nil || c.Principal == "" || c.Namespace == "" || c.Mode != Hardened && c.Mode != Local || begins != (j.s.head == 0) ||
		!begins && c.Namespace != j.s.namespace || !begins && j.t.name != CommandPolicy && (c.Policy.hash != j.s.policy || c.Mode != j.s.mode) {
		return refuse("", writ.MemoryPolicy, "the policy, namespace and mode in force")
	}
	j.d = newDraft(j)
	r = j.t.do(j)
	if r == nil && j.d.err != nil {
		return refuse("", writ.CommandState, "a state the command applies to")
	}
	return r
}

func (j *judge) inForce() *refusal {
	j.d.effect("policy.in_force", "")
	return nil
}

func (j *judge) cancelTest() *refusal {
	t := j.d.tests.get(j.texts["test_id"])
	if t == nil || t.Status != TestProposed {
		return refuse("/test_id", writ.CommandState, "a test that is open")
	}
	j.d.add(Op{EndTest: &EndTestOp{Test: t.ID, Status: TestExpired}})
	return nil
}

func (j *judge) is(name string) bool { return string(j.m[name]) == "true" }

func (j *judge) source() *refusal {
	src := &Source{ID: j.texts["source_id"], Class: TrustClass(j.texts["class"]), RegisteredBy: j.c.Principal}
	if old := j.d.sources.get(src.ID); old != nil {
		if old.Class != src.Class {
			return refuse("/class", writ.CommandState, "the class the source was registered with: what it said was bound by that")
		}
		src.Suspended, src.DistrustedSince = old.Suspended, old.DistrustedSince
	}
	j.d.add(Op{Source: src})
	j.d.effect("source.registered", "")
	return nil
}

func (j *judge) suspend() *refusal {
	old := j.d.sources.get(j.texts["source_id"])
	if old == nil {
		return refuse("/source_id", writ.CommandState, "a registered source")
	}
	src := copied(old)
	src.Suspended = j.is("suspended")
	j.d.add(Op{Source: src})
	return nil
}

func (j *judge) predicate() *refusal {
	p := &Predicate{Name: predicateForm(j.texts["name"]), Single: j.is("single"), RegisteredBy: j.c.Principal, Aliases: j.lists["aliases"]}
	for _, a := range p.Aliases {
		if !slug(a) || j.d.predicates.get(predicateKey(a)) != nil {
			return refuse("/aliases", writ.SchemaInvalid, "lower-case words that are no predicate themselves")
		}
	}
	if j.d.aliases.of(predicateKey(p.Name)) != "" {
		return refuse("/name", writ.SchemaInvalid, "a name that is no alias of another predicate")
	}
	j.d.add(Op{Predicate: p})
	j.d.effect("predicate.declared", "")
	return nil
}

// ruling is why a statement no longer counts that an operator refuted.
const ruling = "ruling"

// rule is a person's word on a conflict.
func (j *judge) rule() *refusal {
	id := j.texts["proposition_id"]
	pr := j.d.propositions.get(id)
	if pr == nil || pr.Gone {
		return refuse("/proposition_id", writ.CommandState, "a proposition that was not erased")
	}
	j.d.touch(pr.Slot, id)
	if j.texts["ruling"] == "uphold" {
		by := j.e.decision()
		j.d.add(Op{Edge: &Edge{ID: j.d.mint("edge"), Type: Supports, From: by, To: id, Level: j.c.Policy.level(ClassOperator, j.c.Mode), RecordedAt: j.e.At, Decision: by}})
	} else {
		j.d.close(slices.DeleteFunc(j.d.edgesAt(id), func(ed *Edge) bool { return ed.Type != Supports }), ruling)
	}
	j.d.effect("proposition.ruled", id)
	return nil
}

// refutedBy is the decision by which an operator refuted a claim as an observation
// says it, or something said later did: what he had before him is not said anew by
// being kept once more. "" is of none.
func (s *State) refutedBy(claim string, o *Observation) (by string) {
	for _, ed := range s.edgesAt(claim) {
		if was := s.observations.get(ed.From); ed.Type == Supports && ed.Resolution == ruling && was != nil && o.positionAt(0).compare(was.positionAt(0)) <= 0 {
			by = ed.ResolvedBy
		}
	}
	return by
}

func (j *judge) merge() *refusal {
	m := &MergeOp{From: j.texts["from"], Into: j.texts["into"], Undo: j.t.name == CommandUnmerge}
	from, into := j.d.entities.get(m.From), j.d.entities.get(m.Into)
	switch {
	case from == nil || into == nil || m.From == m.Into || from.Type != into.Type:
		return refuse("/from", writ.CommandState, "two entities of one type")
	case from.Principal != "" && into.Principal != "" && from.Principal != into.Principal:
		return refuse("/from", writ.CommandState, "entities that are not two different people")
	}
	j.d.add(Op{Merge: m})
	j.d.effect("entity."+j.t.name+"d", m.From)
	return nil
}
