package gate

import (
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// Call is one proposal as the client sent it, already routed to a server.
type Call struct {
	Server string
	Tool   string // the server's own name of the tool; for other methods the prompt or "" for resources
	Method policy.Method
	// Arguments is the arguments member, the zero Value when absent. Its bytes
	// are judged, hashed and forwarded as they are.
	Arguments strictjson.Value
	// Answers is the inputResponses object given inside the call (R31), the zero
	// Value when none.
	Answers strictjson.Value
}

// Input is all a decision depends on.
type Input struct {
	Policy    *policy.Policy
	Catalogue *Catalogue
	// Session is nil for a request that carries no session: it can read, and
	// has no provenance.
	Session *Session
	Call    Call
	Time    time.Time // recorded time of the decision
	// Asked says how far the call was put to a person.
	Asked Asked
	// Look says that Writ makes the call for itself (Decision.Looks): it is a read, and what
	// it returns vouches for nothing but that a name is new.
	Look bool
	// Shadow records what would be decided and lets the call pass.
	Shadow bool
	// OwnPaths are the absolute paths (state directory, configuration, policy,
	// sockets) no argument may name (R34), and, as URLs, the endpoints Writ
	// itself listens on. Programs are the files it starts servers from: no act
	// may write to them.
	OwnPaths []string
	Programs []string
	// Reading is what Texts read of this very call, which then is not read again. Of
	// any other call it is not looked at.
	Reading *Reading
	// Bases are the directories where the server's relative paths may begin:
	// its own, and those the operator gave it. Nil says that none is known;
	// then a path that has the name of one of Writ's own files is refused.
	Bases []string
	// Own is what OwnPaths, Programs and Bases are when they are taken apart, where that is
	// known already. Of any others it is not looked at.
	Own *OwnPlaces
	// Elsewhere says that they may begin at other directories, or name files of
	// another machine, as well: of the Bases not all are known.
	Elsewhere bool
	// Resolved gives, by argument pointer, the real paths the door found it to
	// lead to: behind links, under another name of the same file, and for a
	// write the directories, each with "/" at its end, and what protected names
	// are in them.
	Resolved map[string][]string
	// Unresolved are the pointers of arguments, of those in Texts, that the door
	// did not look up to their end. They are refused.
	Unresolved []string
}

// Trace says, for one argument leaf, what it rests on.
type Trace struct {
	// Contested says that an external origin carries the same value (R25); it
	// is set for transfers and deletes alone.
	Contested bool   `json:"contested,omitempty"`
	Digest    string `json:"digest"` // of the canonical value, keyed by the session's ledger key
	// Evidence names what vouches: "ev12", with the pointer into the recorded
	// result, and line or inner pointer where an extractor found it.
	Evidence []Ref      `json:"evidence,omitempty"`
	Label    writ.Label `json:"label"`
	Pointer  string     `json:"pointer"`
	Role     string     `json:"role"`
	// Rule is the source that matched: user, party (R3: an output that vouches because
	// the user typed it), output, const, catalog,
	// grown (a value that a person allowed from now on), grown:output (one at a place
	// where he said that our own people alone write), user:time, user:day and user:amount (R10, R11), user:composite and user:within (R15), derived:path_join, derived:fresh, invented (R13), derived:
	// and a form (R11), derived:uri_template, seen, said_by and of_named (R12), local and open (R14), approval,
	// protocol (an answer that declines and carries nothing), or "" when nothing
	// vouches.
	Rule string `json:"rule,omitempty"`
}

// Ref is one place in recorded evidence.
type Ref struct {
	End      int        `json:"end,omitempty"`
	Evidence uint32     `json:"ev"`
	Inner    string     `json:"inner,omitempty"`
	Label    writ.Label `json:"label"`
	Line     int        `json:"line,omitempty"`
	// Pointer leads into the result, or as /arguments/… into what its act was called with: that
	// it newly made (R13).
	Pointer string `json:"pointer"`
	// Start and End are, for the user's turns (Tool is "user", Pointer ""), the
	// bytes [start,end) of the turn's exact text; else both are 0.
	Start int    `json:"start,omitempty"`
	Tool  string `json:"tool"` // server/tool
}

// Decision is the answer to one Call. The zero Decision denies.
type Decision struct {
	allow bool

	Call    Call
	Tool    *Tool // nil when the name resolved to nothing
	Effect  policy.Effect
	Outcome writ.Outcome
	// Arguments are what to forward: Call.Arguments, or the normalised form when
	// the outcome is transformed.
	Arguments strictjson.Value
	// Traces has one entry per argument leaf, in document order, for reads too:
	// their labels bound what the result may vouch for (R4). For an accepted
	// act it is the certificate.
	Traces []Trace
	// Shadow is set when the call passes because the session shadows; Outcome
	// then says what would have happened. What shadow mode let pass is never an
	// accepted act, also where it would have been accepted.
	Shadow bool

	ask   *Ask        // what a person may allow
	look  bool        // Input.Look
	looks []Call      // that would help it
	asked writ.Reason // approval.*, where a person was asked

	basis basis
	args  []provenance.Arg // of Traces, in the same order, and then of answers' field names, for R4 and R5
	rules []provenance.OutputRule

	policy *policy.Policy // for R38
	acts   uint64         // acts that were made before it, and itself, set by Session.Decided
	moves  int            // likewise, of the calls that may have led elsewhere (R28)
	placed uint64         // the place it lowered in its session, set by Session.Decided
	open   bool           // a target or selector of an act rests on what anyone can have made appear (R28)
}

// basis is what a decision was made on, as its record states it.
type basis struct {
	session   string
	self      string // Session.self
	number    uint32 // of the next evidence: only facts below it counted
	policy    [32]byte
	catalogue [32]byte
	time      time.Time
	profile   policy.Profile
	contract  bool   // a contract, or a built-in one (R32), judged the call
	drafted   bool   // that nobody reviewed, of a read
	arguments string // keyed digest of the exact bytes that were judged
	answers   string
	forwarded string // keyed digest of Arguments when they were transformed
	shadow    bool
	guesses   []guess    // what R24 counts
	fetches   []fetched  // what R20 counts
	clicks    []click    // what is clicked on by the user's words (R28)
	types     bool       // it types what the user ordered, and no more (R28)
	spends    []spending // what it takes from budgets
	asked     string     // the question that was put to a person
	approvals []string   // the answers an accepted act uses up
	act       string     // key of an act that must not be repeated unfounded (R23)
	once      bool       // its server does it once for each key that the call carries
}

// Allowed reports whether the call may be made. It is false for the zero
// Decision.
func (d *Decision) Allowed() bool { return d != nil && (d.allow || d.Shadow) }

// Status is how a call ended, as the door saw it.
type Status string

// The ends of a call. Anything but OK has no facts.
const (
	OK      Status = "ok"
	Errored Status = "error"   // isError, or a JSON-RPC error
	Cut     Status = "cut"     // larger than the limit
	Unknown Status = "unknown" // sent, and no answer came
	Changed Status = "changed" // the definition it was judged by was not confirmed since (R26)
)

// Result is the recorded answer to an allowed call.
type Result struct {
	Evidence uint32 // its number in the session
	Status   Status
	Time     time.Time        // when it is recorded: from then on one-time values count (R19)
	Value    strictjson.Value // the `result` member, byte for byte; none unless Status is OK or Errored
	// Recalled are the leaves of a result of OwnServer that stand verbatim in an
	// observation the memory captured (R35). The memory says so in process; nothing
	// of it is read from the result's bytes. It is ignored for every other server.
	Recalled []provenance.Recalled
	// Places are the lowered places of the state, which count up to the number
	// Through (R38).
	Places  *provenance.Places
	Through uint64
	// Own is the number of the place that this very call lowered there, 0 for none.
	Own uint64
	// Full says that the process has no room for more evidence: the result is
	// passed on and vouches for nothing.
	Full bool
	// Crowded says that it was WhyCrowded when it was recorded.
	Crowded bool
}

// Observation is what a result is worth: computed before the result is
// recorded, folded into the session after it is durable.
type Observation struct {
	// Admissible says that the result passed the typed output gate and its
	// leaves are facts with their contract's labels. Otherwise Why says why it
	// vouches for nothing: "error", "unvalidated", "no_contract", "cut",
	// "unknown", "changed", "extraction", "evidence_cap", "evidence_share", "no_session",
	// "undecided": of a call that this session was not given by Decided, or
	// whose result it has.
	Admissible bool   `json:"admissible"`
	Why        string `json:"why,omitempty"`
	Facts      int    `json:"facts"`
	evidence   uint32
	session    *Session // that made it, the only one that folds it in
	call       *callKey // of which it is the result, nil for a turn or a refused call
	server     string
	list       *listing                // R32
	pending    *provenance.Pending     // nil unless an admissible result
	turn       *provenance.PendingTurn // nil unless an admissible turn
	act        string                  // Decision.basis.act of the call it is the result of
	once       bool                    // likewise
	root       uint32                  // of a page that a seen link led to
	unasked    int                     // the values of a result of which no contract says anything
	approval   *answer                 // nil unless a person's answer
	page       *page                   // what the call showed of it, nil where nothing says so
	place      *visit                  // where the call left the browser, nil where nothing says so
	moves      int                     // Session.moves when it was begun, with it; 0 where something else was under way
}
