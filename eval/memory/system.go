package memory

import "time"

// Evidence is one thing that came in by a channel which proves whose it is: a turn
// of the user, or what a tool returned, as text or as JSON.
type Evidence struct {
	ID     string // ev1, ev2 … in their order
	Source string // user, or the tool: crm/get_contact
	Level  int    // LevelUser, LevelTool or LevelStranger
	Text   string
	At     time.Time
}

// The levels of evidence. What the agent says of itself is below all of them.
const (
	LevelStranger = 1 // what anybody can have written
	LevelTool     = 2 // a tool of the house
	LevelUser     = 3
)

// Note is what an agent files: remember(text, about, replaces). Text is a whole
// quote, or the agent's own sentence; Value is the value in it, where it has one.
type Note struct {
	Text, Value        string
	Subject, Predicate string // "me" is the user himself; a Note without a subject keeps a quote
	Replaces           string // the id of an item
}

// Filed is what came of a proposal: the ids it made or met, the first of them what
// was asked for, or that it was refused, and whether because it does not fit the form of
// what the tool takes.
type Filed struct {
	IDs       []string
	Refused   bool
	Malformed bool
}

// made is the id of what was asked for, "" for none.
func (f Filed) made() string {
	if f.Refused || len(f.IDs) == 0 {
		return ""
	}
	return f.IDs[0]
}

// Item is one thing a memory answers with.
type Item struct {
	ID string
	// Text is what is told, Value the value of the subject's predicate in it.
	Text, Value string
	// Trust is the word that stands beside it. A memory without such words tells
	// everything as Established.
	Trust string
	// Evidence is what stands behind it.
	Evidence []string
}

// The words of trust. Whatever else a memory says is none of belief.
const (
	Established = "established"
	Reported    = "reported"
	Unverified  = "unverified"
	Contested   = "contested"
)

// Memory is one memory of one user under measure. It is used from one goroutine.
type Memory interface {
	// At sets the clock, which is never set back.
	At(time.Time)
	// Hear is told what came in; the agent has filed nothing of it yet.
	Hear(Evidence)
	Remember(Note) Filed
	// Propose calls one of the nine tools.
	Propose(tool string, payload []byte) Filed
	// Recall answers a question, ten items at most, the best first.
	Recall(question string) []Item
	// Current answers what a subject's predicate is, the newest belief first.
	Current(subject, predicate string) []Item
	// History lists the values there were, oldest first; false where no such list
	// is kept.
	History(subject, predicate string) ([]string, bool)
	// Fork is a memory to which the same was done and that goes on by itself.
	Fork() Memory
}

// System is a memory with its name.
type System struct {
	ID string `json:"system"`
	// Name and Of are for people: what it does, and which memories come down to
	// it by what stands in their code.
	Name string `json:"name"`
	Of   string `json:"of"`
	// Emulated says that it is such a decision rule, rewritten here, and no run
	// of anybody's product.
	Emulated bool          `json:"emulated"`
	New      func() Memory `json:"-"`
}

// Systems are the product and the rules beside it, in the order of the report.
func Systems() []System { return append([]System{Product()}, Rules()...) }

// beginning is hour 0 of everything that is generated.
var beginning = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
