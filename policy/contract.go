package policy

import (
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/writ-project/writ/internal/money"
	"github.com/writ-project/writ/internal/statement"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/provenance"
)

// OwnServer is the name of the one server that lives within Writ: the governed
// memory. No configuration and no policy may use the name.
const OwnServer = "writ"

// The regular expressions of ServerName and ToolName, for whoever has to say why
// a name was refused.
const (
	ServerNames = `^[a-z0-9][a-z0-9-]{0,31}$`
	ToolNames   = `^[A-Za-z0-9_.-]{1,128}$`
)

var (
	serverName = text.Pattern(ServerNames)
	toolName   = text.Pattern(ToolNames)
)

// ServerName reports whether a server may have that name in a configuration:
// no underscore, so that a public name `server__tool` has one reading.
func ServerName(s string) bool { return serverName().MatchString(s) }

// ToolName reports whether a tool may have that name: no other character is
// safe in a terminal, in a policy and in every client (T05).
func ToolName(s string) bool { return toolName().MatchString(s) }

// Method distinguishes tools/call from the other requests the gate judges as
// tools (R32). Its zero value is tools/call.
type Method string

// The judged methods beside tools/call. Their arguments are the request's own
// members: {"uri":…}, {"name":…,"arguments":…}, {"ref":…,"argument":…}.
const (
	CallTool          Method = ""
	ReadResource      Method = "resources/read"
	SubscribeResource Method = "resources/subscribe"
	GetPrompt         Method = "prompts/get"
	Complete          Method = "completion/complete"
)

// The listings that make a resource, a template or a prompt known (R32). They
// are reads; the door decides and observes them per server like any call, with
// the server's own result object, and Arguments is {} or {"cursor":…}.
const (
	ListResources Method = "resources/list"
	ListTemplates Method = "resources/templates/list"
	ListPrompts   Method = "prompts/list"
)

// methods are those words, and whether they send the server what the caller
// chose rather than list what there is.
var methods = map[string]bool{
	string(ReadResource): true, string(SubscribeResource): true, string(GetPrompt): true, string(Complete): true,
	string(ListResources): false, string(ListTemplates): false, string(ListPrompts): false,
}

// Judged reports whether m is one of the methods that are judged as tools, so
// not tools/call.
func (m Method) Judged() bool { _, ok := methods[string(m)]; return ok }

// Acts reports whether m is one of them and sends what the caller chose: it is at
// least an egress (R32).
func (m Method) Acts() bool { return methods[string(m)] }

// Effect is what a call can do to the world, a bit set: the duties of all set bits apply. The zero Effect is unknown and counts
// as every effect.
type Effect uint8

// The effects. All but Read are gated.
const (
	Read Effect = 1 << iota
	Egress
	Write
	Send
	Transfer
	Delete
	Auth

	// EveryEffect is what an unknown tool or an unnamed case has.
	EveryEffect = Read | Egress | Write | Send | Transfer | Delete | Auth
)

// Gated reports whether the arguments must be founded before the call. The
// zero Effect is gated.
func (e Effect) Gated() bool { return e != Read }

var effectNames = [...]string{"read", "egress", "write", "send", "transfer", "delete", "auth"}

// Names returns the names of the effects in e, in the order above. The zero
// Effect is all of them.
func (e Effect) Names() []string {
	if e == 0 {
		e = EveryEffect
	}
	out := make([]string, 0, bits.OnesCount8(uint8(e)))
	for i, n := range effectNames {
		if e&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return out
}

// String returns the effect's words, joined by "+": "read", "write+send". It is
// "every" for EveryEffect and for zero.
func (e Effect) String() string {
	if e == EveryEffect || e == 0 {
		return "every"
	}
	return strings.Join(e.Names(), "+")
}

// Role is what an argument decides about an act. The zero Role is Target, the
// strictest.
type Role uint8

// The roles of arguments.
const (
	Target Role = iota
	Selector
	Amount
	TimeRole
	Enum
	Control
	Content
	Query
	SecretRole
)

var roleNames = [...]string{"target", "selector", "amount", "time", "enum", "control", "content", "query", "secret"}

// String returns the role's name as policies and records spell it.
func (r Role) String() string { return roleNames[r] }

// Authority reports whether the role is one of target, selector, amount,
// secret, control.
func (r Role) Authority() bool {
	switch r {
	case Target, Selector, Amount, SecretRole, Control:
		return true
	}
	return false
}

// SourceKind is one word of `from:`.
type SourceKind uint8

// The sources. A policy that names another is refused.
const (
	FromOutput   SourceKind = iota // a labelled leaf of an earlier result
	FromConst                      // the operator's constants
	FromCatalog                    // an enum or const of the pinned schema
	FromDerived                    // Op over vouched values
	FromSeen                       // R20: stood whole in any result; egress only
	FromUser                       // R6: typed whole by the authenticated user
	FromSaidBy                     // R12: of a record whose origin the user named
	FromNamed                      // R12: of a record that the user named, of which he asked for such values
	FromApproval                   // a person's answer, which may stand for any value that nothing vouches for
)

// Source is one accepted origin of an argument.
type Source struct {
	Kind   SourceKind
	Server string             // FromOutput: restricts to this tool's output; "" any. FromSaidBy: where the origin stands
	Tool   string             //
	At     provenance.Pattern // FromOutput: restricts to this output pointer
	HasAt  bool               //
	Ours   bool               // FromOutput: At is external, and a person said that our own people alone write there
	Minted bool               // Ours: and that nobody does, because the server gives it (WritesServer)
	InText bool               // Ours: At is a field of the JSON that the first text is as a whole
	Const  [][]byte           // FromConst: JSON literals
	Grown  bool               // FromConst: a person allowed it from now on
	Op     string             // FromDerived: "path_join"
	// Phrases are what users call such values of a record, before they name it (FromNamed),
	// or the orders by which they leave a name to the agent (FreshName with Begins).
	//
	// Of FromConst and FromOutput they are the orders with which the user chose such a value (R21), and of
	// Element those that what is clicked on may be called by.
	Phrases []string
	// Until are the tools by whose calls a value that FromOutput gives may be over: it counts as
	// long as it is what the server says is so, an output that is a location (R28).
	Until []Source
}

// Contested is what a contract says of a value that a stranger's text carries too
// (R25).
type Contested uint8

// What it may say. A person may allow ContestedAsks.
const (
	ContestedAccepted Contested = iota
	ContestedAsks
	ContestedRefused
)

// The operations of `derived:`.
const (
	PathJoin  = "path_join"
	FreshName = "fresh"
	// TypedIn is a directory that is vouched for and what the user typed of what is in it (R13).
	TypedIn = "typed_in"
	// Due is an amount of which the server takes no other than what is due for all else
	// that the call says (R11).
	Due = "due"
	// Element is what the newest listing of a page has under a name made of the user's words (R28).
	Element = "element"
)

// Budget bounds a sequence of accepted calls of one tool in one session (R27): their
// number, or the sum of an amount, over all or for each value of one argument, ever
// or within a time. What was taken is not given back, whatever became of the call.
type Budget struct {
	Calls  int                // 0 with Sum
	Sum    provenance.Pattern // the amount that is summed, with HasSum
	HasSum bool
	Max    string             // of the sum, in decimal
	Per    provenance.Pattern // with HasPer: counted for each value there
	HasPer bool
	Within time.Duration // 0: the whole session
}

// Fill returns the pointer that a pattern of an argument stands for beside one at path,
// which matches another: a * in it is the index or key that this one has.
func Fill(at, beside provenance.Pattern, path []string) []string {
	if at.Exact() {
		return at.Tokens
	}
	out := slices.Clone(at.Tokens)
	n := 0
	for i, t := range beside.Tokens {
		if next := slices.Index(at.Tokens[n:], "*"); t == "*" && next >= 0 {
			n += next
			out[n] = path[i]
			n++
		}
	}
	return out
}

// Binding says that the values at Others are of the record that the value at
// First names (R37): `same_record: [/order_id, /item_ids/*]` of a tool, or
// `of: /order_id` of an argument.
type Binding struct {
	// First is exact, or with a * stands for the one at the same index: then Others is
	// one pattern with as many or more of them.
	First  provenance.Pattern
	Others []provenance.Pattern
	// By, unless "", is a collection: a record that a member of it names which stands
	// directly in First's does as well.
	By string
}

// ArgRule is what a contract says of the argument leaves one pattern names.
type ArgRule struct {
	At          provenance.Pattern
	Role        Role
	Type        provenance.Type
	Collection  string
	From        []Source // the explicit list, or the role's default
	FromDefault bool     // From was omitted in the policy
	Words       []string // R8: "file" makes a typed 13 this argument's 13
	Orders      []string // R9: "delete" of which what the user typed has to be what is ordered
	Units       []string // R8: "shares" makes a 50 before it this amount's 50
	Steers      bool     // held to From by a read too
	Sorts       bool     // of a read: what it says leaves nothing out of the list
	EndsDay     bool     // R10: a day that the user named stands for its end
	AnyHour     bool     // R10: and for any hour of it
	Place       bool     // R21: where an act is done, of which the phrase that orders it says nothing
	Header      bool     // R17: a text that a head holds as it stands (provenance.CheckHeader)
	One         bool     // R9: "add a customer" orders one of customers
	Makes       bool     // R13: the act newly makes what it names, and fails where there is one
	Shows       bool     // R9: the read shows what it names, and fails where there is none
	Missing     string   // R9: or its result says so of that, right behind it
	MaxItems    int      // R16; 0 means 50 on authority roles, no bound else
	Normalise   bool     // R17: replace by the canonical form, report transformed
	Local       bool     // content: local (R14)
	Composed    bool     // content: open (R14), or label
	Label       bool     // content: label: what a thing is called, for people alone
	Open        bool     // R16: the contract opens this object to unnamed properties
	Owner       [][]byte // R28: constants the record's owner pointer may hold
	OwnerUser   bool     // R28: or what the user typed
	Extensions  []string // R36: how a name that the agent makes up may end; "": it has no dot
	Begins      []string // R36: or how it may begin, of what the user ordered and the act makes
	Forms       []money.Form
	In          []provenance.Pattern // R36: the arguments that say in what the act makes it, exact
	Agrees      []provenance.Pattern // R37: the arguments of which what shows the value says the same
	Max         string               // R11: the most an amount may be, in decimal; "" for no bound
	Line, Col   int                  // where it stands in the policy file
}

// MakesDirs reports whether the operator lets it name what has no extension, as a directory (R36).
func (a *ArgRule) MakesDirs() bool { return a != nil && slices.Contains(a.Extensions, "") }

// TakesNew reports whether an argument accepts the path of what is not there yet (R13, R36): what its act makes is there.
func (a *ArgRule) TakesNew() bool {
	return a != nil && slices.ContainsFunc(a.From, func(s Source) bool {
		return s.Kind == FromDerived && (s.Op == FreshName || s.Op == TypedIn)
	})
}

// Constants is how many values the operator wrote for it.
func (a *ArgRule) Constants() (n int) {
	for _, src := range a.From {
		n += len(src.Const)
	}
	return n
}

// Narrows reports whether a value that this argument takes by a rule (Trace.Rule) leaves
// something out of a list: none does where the operator leaves no other, or says that it sorts.
func (a *ArgRule) Narrows(rule string) bool {
	return a == nil || rule != "const" || a.Constants() != 1 && !a.Sorts
}

// NoArgs is what a contract says of calls without a target, selector or amount
// (R21).
type NoArgs uint8

// The zero NoArgs refuses; NoArgsApproval, which a policy means where it says
// nothing, asks a person.
const (
	NoArgsRefuse NoArgs = iota
	NoArgsApproval
	NoArgsAllow
	NoArgsUser // where the user's turn holds one of the contract's phrases; else a person is asked
)

// Case is the effect and arguments for some values of one enum argument.
type Case struct {
	Values    [][]byte // JSON literals of the discriminating argument
	Effect    Effect
	Args      []ArgRule // beside the contract's own
	Phrases   []string  // in the contract's stead; they say the case's value (R21)
	Line, Col int
}

// KeptCall is a call that a person allowed: its arguments, an object in canonical form,
// and where the free texts of it stood that these are without. Of a contract with Where it
// is one at a host, and nil Args are every call of the tool there.
type KeptCall struct {
	Args  []byte
	Texts []string
	On    string
}

// Contract is what the operator declares for one tool.
type Contract struct {
	Server, Tool string
	Method       Method // R32; CallTool for a tool, else Tool is the method's name
	Pin          string // "sha256:<hex>" of the full definition, "" when not pinned
	Closed       bool   // drafted by `writ init` and not yet opened by a person
	Effect       Effect
	Args         []ArgRule
	Outputs      []provenance.OutputRule
	NoArgs       NoArgs
	ReadsAt      []string // path of a statement that makes the call a read where it only reads, nil without one
	ReadsIn      statement.Dialect
	PartsAt      string // the argument with a statement that is judged by its parts where it only adds, "" without one
	PartsIn      statement.Dialect
	CaseAt       []string // path of the discriminating argument, nil without cases
	Cases        []Case
	OutputSchema []byte // operator's schema where the server publishes none
	Notice       bool   // it sends notice of a change to those in the record, and no text
	Idempotent   *bool
	OnceBy       string // the argument that is the server's idempotency key, "" for none
	Contested    Contested
	Optional     bool // the tool may be absent from the live list
	Overrules    bool // the annotations of the pinned definition add no effect
	Line, Col    int

	// Phrases are those of which the user's latest turn must hold one for a call
	// without a target, selector or amount (R21), unless its case has its own.
	Phrases []string
	Budgets []Budget // R27
	// Bindings say which arguments belong to one record (R37).
	Bindings []Binding
	// Where are the calls of which the latest says where the act is done, each with the
	// argument that says it, if it has one (R28).
	Where []Source
	// Among is the argument that says which of several such places, "" for none: then all of
	// those calls of the session went to the one.
	Among string
	// Plain says that a read is asked with plain words: what nothing vouches for and
	// could reach somebody else is asked about.
	Plain bool
	// Assumed is Delete where Effect has it and nobody said so: the tool is judged by it
	// all the same, and a call that a person looked at whole may be kept (Kept).
	Assumed Effect
	// Kept are the calls that a person allowed from now on (Grown.Call).
	Kept []KeptCall
	// Composites are the words in which the user writes several of them as one (R15).
	Composites []Composite

	sets []field // R38: where what it is sent can come back; nil: anywhere
}

// Collection is a set of records; a closed one gains members only by the
// operator's or the user's own side (R28).
type Collection struct {
	Closed         bool // MayHoldSecrets says that its members may read what is made of a secret (R30).
	MayHoldSecrets bool
	Called         map[string][]provenance.Alias // what else users call a member (R6)
}

// Profile selects how much beyond STTI-001 counts as provenance.
type Profile string

// Standard is the default; Strict is STTI-001 to the letter.
const (
	Standard Profile = "standard"
	Strict   Profile = "strict"
)

// Policy is one parsed policy file. It is immutable.
type Policy struct {
	Profile Profile
	// PinsOptional is `pins: optional`: a contract without a pin is open all
	// the same. A pin that is given must match in either case.
	PinsOptional bool
	Collections  map[string]Collection
	Contracts    map[string]*Contract // by "server/tool"
	Source       []byte               // the exact file
	Digest       [32]byte             // SHA-256 of Source
	Warnings     []Fault              // lint findings that do not stop the start, sorted

	Grown []Grown // what a person allowed from now on
	// ApprovalsPerSession is how many calls of a session may be put to a person, nil
	// for the default.
	ApprovalsPerSession *int

	goes   map[string]Source   // Where of all contracts, by server/tool
	stores map[string][]string // R38: of a server or server/tool
}

// Fault is one defect of a file the operator wrote.
type Fault = strictyaml.Fault

// Knows reports whether the policy says anything of a server's tools.
func (p *Policy) Knows(server string) bool {
	for _, c := range p.Contracts {
		if c.Server == server {
			return true
		}
	}
	return false
}

// Parts are the arguments of a call as they are judged: with a statement that only adds to a database taken
// apart (statement.Adds), where the contract says in which argument one stands.
func (c *Contract) Parts(args strictjson.Value) strictjson.Value {
	if c == nil || c.PartsAt == "" {
		return args
	}
	sql, ok := args.Get(c.PartsAt).Text()
	if !ok {
		return args
	}
	parts, ok := statement.Adds(c.PartsIn, sql)
	if !ok {
		return args
	}
	return strictjson.Of(args.With(strictjson.Member{Name: c.PartsAt, Value: parts.Raw()}))
}

// Goes reports whether a call of a tool, of that effect, says where other acts are done, and at
// which of its arguments: none has the empty path. Where a tool acts by some of its cases, as one
// that lists pages and opens them, one that reads goes nowhere.
func (p *Policy) Goes(server, tool string, effect Effect) (path []string, ok bool) {
	s, ok := p.goes[server+"/"+tool]
	if c := p.Contracts[server+"/"+tool]; ok && c != nil && !effect.Gated() && c.Declared().Gated() {
		return nil, false
	}
	return s.At.Tokens, ok
}

// Approvals is how many calls of one session may be put to a person.
func (p *Policy) Approvals() int {
	if p.ApprovalsPerSession != nil {
		return *p.ApprovalsPerSession
	}
	return defaultApprovals
}

// defaultApprovals bounds them where the policy does not: who is asked too often
// reads no more.
const defaultApprovals = 50
