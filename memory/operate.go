package memory

import (
	"slices"
	"strconv"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
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
	CommandRetain     = "retain"    // change how long an episode is kept
	CommandCancelTest = "cancel_test"
	CommandSweep      = "sweep" // evaluate canonical propositions, end what expired
)

var commands = []tool{
	{CommandOpen, "Begin a namespace under the context's policy and mode.", nil},
	{CommandPolicy, "Put the context's policy and mode in force.", nil},
	{CommandSource, "Register a source.", []field{
		{name: "source_id", kind: kindText, required: true, min: 1, max: 256},
		{name: "class", kind: kindWord, required: true, enum: []string{"operator", "direct_user", "tool_internal", "user_attested", "tool_external", "document", "web", "peer_agent", "agent_inference", "import"}},
		{name: "reliability", kind: kindUnit},
		{name: "correction_rate", kind: kindUnit},
		{name: "domains", kind: kindTexts, max: 20},
		{name: "group", kind: kindText, min: 1, max: 128},
	}},
	{CommandSuspend, "Refuse what a source says from now on, or take it back.", []field{
		{name: "source_id", kind: kindText, required: true, min: 1, max: 256},
		{name: "suspended", kind: kindBool, required: true},
	}},
	{CommandPredicate, "Declare a predicate.", []field{
		{name: "name", kind: kindSlug, required: true},
		{name: "aliases", kind: kindTexts, max: 20},
		{name: "single", kind: kindBool},
		{name: "volatility", kind: kindWord, enum: tierWords},
		{name: "class", kind: kindWord, enum: classWords},
		{name: "self_report", kind: kindBool},
		{name: "min_groups", kind: kindCount, max: 10},
		{name: "accept_confidence", kind: kindUnit},
		{name: "future_dates", kind: kindBool},
		{name: "domain", kind: kindSlug},
	}},
	{CommandRule, "Rule on a proposition: uphold closes what contradicts it, refute what supports it.", []field{
		{name: "proposition_id", kind: kindID, required: true, enum: []string{"prop"}},
		{name: "ruling", kind: kindWord, required: true, enum: []string{"uphold", "refute"}},
	}},
	{CommandMerge, "Join one entity into another. Both ids stay.", []field{
		{name: "from", kind: kindID, required: true, enum: []string{"ent"}},
		{name: "into", kind: kindID, required: true, enum: []string{"ent"}},
	}},
	{CommandUnmerge, "Undo a merge.", []field{
		{name: "from", kind: kindID, required: true, enum: []string{"ent"}},
		{name: "into", kind: kindID, required: true, enum: []string{"ent"}},
	}},
	{CommandErase, "Erase observations, by id, source, session or person, with everything that repeats their text.", []field{
		{name: "observation_ids", kind: kindObs, min: 1, max: 1000},
		{name: "source", kind: kindText, min: 1, max: 256},
		{name: "session", kind: kindText, min: 1, max: 128},
		{name: "principal", kind: kindText, min: 1, max: 256},
		{name: "reason", kind: kindSlug, required: true},
	}},
	{CommandDistrust, "Retract what a source said since some time, and refuse it from now on.", []field{
		{name: "source", kind: kindText, required: true, min: 1, max: 256},
		{name: "since", kind: kindTime, required: true},
	}},
	{CommandRetain, "Change how long an episode is kept.", []field{
		{name: "episode_id", kind: kindID, required: true, enum: []string{"epi"}},
		{name: "retention_class", kind: kindWord, required: true, enum: []string{"transient", "standard", "legal_hold"}},
	}},
	{CommandCancelTest, "End a test that nobody will run.", []field{
		{name: "test_id", kind: kindID, required: true, enum: []string{"test"}},
	}},
	{CommandSweep, "Evaluate canonical propositions by the time, end tests and episodes whose time is over.", nil},
}

// Commands returns the names of the operator's commands.
func Commands() (out []string) {
	for _, c := range commands {
		out = append(out, c.name)
	}
	return out
}

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
	j := &judge{s: s, c: c, e: e}
	for i := range commands {
		if commands[i].name == command {
			j.t, e.Tool = &commands[i], "operator."+command
		}
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
	e.Status = writ.Accepted
	out := Outcome{Decision: mintID("dec", e.N, 1), Policy: e.Policy, Mode: e.Mode, Transitions: j.d.out, Effects: e.Effects}
	out.Status = writ.Accepted
	return Decision{out.filled(), e, envelope("operator."+command, j.payload())}
}

func (j *judge) command(args []byte) *refusal {
	if j.t == nil {
		return refuse("", writ.CommandUnknown, "one of the operator's commands")
	}
	if err := strictjson.Check(args, payloadLimits); err != nil {
		return payloadFault(err)
	}
	if strictjson.KindOf(args) != strictjson.Object {
		return refuse("", writ.PayloadNotObject, "arguments that are an object")
	}
	canonical, err := strictjson.Canonical(args)
	if err != nil {
		return payloadFault(err)
	}
	if r := j.read(canonical, j.t.fields); r != nil {
		return r
	}
	c := &j.c
	begins := j.t.name == CommandOpen
	if c.Policy == nil || c.Principal == "" || c.Namespace == "" || c.Mode != Hardened && c.Mode != Local || begins != (j.s.head == 0) ||
		!begins && c.Namespace != j.s.namespace || !begins && j.t.name != CommandPolicy && (c.Policy.hash != j.s.policy || c.Mode != j.s.mode) {
		return refuse("", writ.MemoryPolicy, "the policy, namespace and mode in force")
	}
	j.d = &draftEvent{State: j.s.draft(), e: j.e, p: c.Policy, minted: map[string]int{}, value: j.value()}
	j.d.head = j.e.N
	var r *refusal
	switch j.t.name {
	case CommandOpen, CommandPolicy:
		j.d.effect("policy.in_force", "")
	case CommandSource:
		r = j.source()
	case CommandSuspend:
		r = j.suspend()
	case CommandPredicate:
		r = j.predicate()
	case CommandRule:
		r = j.rule()
	case CommandMerge, CommandUnmerge:
		r = j.merge()
	case CommandErase:
		r = j.erase()
	case CommandDistrust:
		r = j.distrust()
	case CommandRetain:
		r = j.retain()
	case CommandCancelTest:
		t := j.d.tests.get(j.texts["test_id"])
		if t == nil || t.Status != TestProposed {
			return refuse("/test_id", writ.CommandState, "a test that is open")
		}
		j.d.add(Op{EndTest: &EndTestOp{Test: t.ID, Status: TestExpired}})
	case CommandSweep:
		j.sweep()
	}
	if r == nil && j.d.err != nil {
		return refuse("", writ.CommandState, "a state the command applies to")
	}
	return r
}

func (j *judge) is(name string) bool { return string(j.m[name]) == "true" }

func (j *judge) source() *refusal {
	src := &Source{ID: j.texts["source_id"], Class: TrustClass(j.texts["class"]), Group: j.texts["group"], RegisteredBy: j.c.Principal,
		CorrectionRate: j.units["correction_rate"], Domains: j.lists["domains"]}
	src.Reliability = j.c.Policy.class(src.Class, j.c.Mode).Reliability
	if r, given := j.units["reliability"]; given {
		src.Reliability = r
	}
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
	src := old.copied()
	src.Suspended = j.is("suspended")
	j.d.add(Op{Source: src})
	return nil
}

func (j *judge) predicate() *refusal {
	p := &Predicate{Name: j.texts["name"], Single: j.is("single"), Volatility: Medium, Class: Descriptive, SelfReport: j.is("self_report"),
		MinConfidence: j.units["accept_confidence"], FutureDates: j.is("future_dates"), Domain: j.texts["domain"],
		RegisteredBy: j.c.Principal, Aliases: j.lists["aliases"]}
	if p.SelfReport && j.c.Policy.Flags.ExtraTiers {
		p.Volatility = Durable
	}
	if v, given := j.texts["volatility"]; given {
		p.Volatility = TierName(v)
	}
	if (p.Volatility == Durable || p.Volatility == Static) && !j.c.Policy.Flags.ExtraTiers {
		return refuse("/volatility", writ.PropositionVolatility, "low, medium or high: this policy has no other tiers")
	}
	if v, given := j.texts["class"]; given {
		p.Class = PropositionClass(v)
	}
	if n, given := j.m["min_groups"]; given {
		p.MinGroups, _ = strconv.Atoi(string(n)) // checked when it was read
	}
	for _, a := range p.Aliases {
		if !slug(a) || j.d.predicates.get(a) != nil {
			return refuse("/aliases", writ.SchemaInvalid, "lower-case words that are no predicate themselves")
		}
	}
	if j.d.aliases.get(p.Name) != nil {
		return refuse("/name", writ.SchemaInvalid, "a name that is no alias of another predicate")
	}
	if old := j.d.predicates.get(p.Name); old != nil && old.Single != p.Single {
		return refuse("/single", writ.CommandState, "the cardinality the predicate was declared with: its slots rest on it")
	}
	j.d.add(Op{Predicate: p})
	j.d.effect("predicate.declared", "")
	return nil
}

// rule is a person's word on a conflict.
func (j *judge) rule() *refusal {
	id := j.texts["proposition_id"]
	pr := j.d.propositions.get(id)
	if pr == nil || !pr.Open() {
		return refuse("/proposition_id", writ.CommandState, "a proposition that was not superseded or erased")
	}
	by, against := mintID("dec", j.e.N, 1), Contradicts
	if j.texts["ruling"] == "refute" {
		against = Supports
	}
	for _, ed := range j.d.edgesAt(id) {
		if ed.Type == against && ed.Active() {
			j.d.add(Op{Close: &CloseOp{Edge: ed.ID, Resolution: "ruling", By: by}})
		}
	}
	rivals := slices.Clone(pr.Challenged)
	if against == Contradicts {
		for _, r := range rivals {
			j.d.supersede(j.d.propositions.get(id), j.d.propositions.get(r), j.d.propositions.get(r).ValidFrom)
		}
		if pr.Failed {
			no := false
			j.d.add(Op{Mark: &MarkOp{Proposition: id, Failed: &no, ClearedBy: &[]string{}}})
		}
	} else {
		j.d.unchallenge(id, "ruling", by)
	}
	j.d.evaluate(id, change{evidence: true, support: against == Contradicts})
	for _, r := range rivals {
		j.d.evaluate(r, change{evidence: true})
	}
	j.d.effect("proposition.ruled", id)
	return nil
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

func (j *judge) retain() *refusal {
	ep := j.d.episodes.get(j.texts["episode_id"])
	if ep == nil || ep.Expired {
		return refuse("/episode_id", writ.CommandState, "an episode that is kept")
	}
	j.d.add(Op{Retain: &RetainOp{Episode: ep.ID, Retention: RetentionClass(j.texts["retention_class"]), ExpiresAt: j.expiry(RetentionClass(j.texts["retention_class"]))}})
	return nil
}

func (j *judge) expiry(r RetentionClass) *Instant {
	days := j.c.Policy.Retention.Standard
	switch r {
	case LegalHold:
		return nil
	case Transient:
		days = j.c.Policy.Retention.Transient
	}
	until := j.e.At + Instant(days)*86_400_000_000
	return &until
}

// sweep lowers what time has made stale and ends what is over.
func (j *judge) sweep() {
	for _, id := range j.s.propositions.keys() {
		if !j.s.propositions.get(id).Canonical {
			continue
		}
		if next := j.d.evaluate(id, change{}); next == Deprecated || next == Rejected {
			no, because := false, j.d.propositions.get(id).Rule
			j.d.add(Op{Mark: &MarkOp{Proposition: id, Canonical: &no, Archived: &because}})
		}
	}
	x := &ExpireOp{}
	for _, id := range j.s.tests.keys() {
		if t := j.s.tests.get(id); t.Status == TestProposed && t.ExpiresAt < j.e.At {
			x.Tests = append(x.Tests, id)
		}
	}
	for _, id := range j.s.episodes.keys() {
		if ep := j.s.episodes.get(id); !ep.Expired && ep.ExpiresAt != nil && *ep.ExpiresAt < j.e.At {
			x.Episodes = append(x.Episodes, id)
		}
	}
	if len(x.Tests)+len(x.Episodes) > 0 {
		j.d.add(Op{Expire: x})
	}
	j.d.forecasts()
}
