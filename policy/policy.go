// Package policy is what the operator declares: for each tool a contract that
// says what a call does, what its arguments may rest on and what its results are
// worth. Parse reads it from strict YAML and accepts nothing it does not enforce;
// lint says what is allowed and likely wrong. It is pure, decides nothing and
// trusts nothing but the file.
package policy

import (
	"crypto/sha256"
	"slices"

	"github.com/writ-project/writ/internal/strictyaml"
)

// policyFile is the operator's policy as it is written: strict YAML, one
// document, every key listed here and no other. What the words mean stands in
// docs/policy.md.
type policyFile struct {
	strictyaml.Place
	// Version is 1, and may be left out.
	Version strictyaml.Whole `yaml:"version"`
	// Profile is standard (default) or strict.
	Profile strictyaml.String `yaml:"profile"`
	// Pins is required (default: a contract without a pin is shut) or optional.
	Pins strictyaml.String `yaml:"pins"`
	// Collections declares the sets of records by name.
	Collections strictyaml.Map[collectionFile] `yaml:"collections"`
	// Tools holds the contracts, by server/tool.
	Tools strictyaml.Map[toolFile] `yaml:"tools"`
	// ApprovalsPerSession bounds how many calls of a session are put to a person.
	ApprovalsPerSession strictyaml.Whole `yaml:"approvals_per_session"`
	// Grown is what a person allowed from now on: grown.yaml.
	Grown strictyaml.Seq[grownFile] `yaml:"grown"`
	// Stores says which servers and tools read and write the same things, beside
	// those of one server: disk: [files, backup/list] (R38).
	Stores strictyaml.Map[strictyaml.Words] `yaml:"stores"`
}

type collectionFile struct {
	strictyaml.Place
	// Closed says that only the operator's or the user's own side can make a
	// member appear (R28).
	Closed strictyaml.Truth `yaml:"closed"`
	// MayHoldSecrets says that the members of a closed collection may be told what
	// the agent makes of a secret (R30).
	MayHoldSecrets strictyaml.Truth `yaml:"may_hold_secrets"`
	// Called says what else users call a member: TX: [Texas]. To type that is to type
	// the member (R6).
	Called strictyaml.Map[strictyaml.Words] `yaml:"called"`
}

type toolFile struct {
	strictyaml.Place
	// Effect is one word or a list; required unless there are cases.
	Effect strictyaml.Words `yaml:"effect"`
	// Assumed: delete says that nobody said the tool deletes, of a draft whose Effect has it.
	Assumed strictyaml.String `yaml:"assumed"`
	// Pin is sha256:<64 hex> of the approved definition (R26).
	Pin strictyaml.String `yaml:"pin"`
	// Closed marks a draft no person has opened.
	Closed strictyaml.Truth `yaml:"closed"`
	// Optional says that the tool may be missing from the server's list.
	Optional strictyaml.Truth `yaml:"optional"`
	// Annotations: overruled says that the effect above is right where the pinned
	// definition's annotations say that the tool does more.
	Annotations strictyaml.String `yaml:"annotations"`
	// Args holds the rules of the arguments, by pointer.
	Args strictyaml.Map[argFile] `yaml:"args"`
	// Arguments: plain says of a read that its arguments hold no link, host, mail
	// address or key that nothing vouches for; else a person is asked.
	Arguments strictyaml.String `yaml:"arguments"`
	// Outputs labels leaves of the results.
	Outputs strictyaml.Seq[outputFile] `yaml:"outputs"`
	// Sets lists the outputs in which what the tool is sent can come back: a
	// collection, or server/tool#/pointer. Left out, those are all of its stores
	// that are not authoritative (R38).
	Sets strictyaml.Words `yaml:"sets"`
	// NoArgs is approval (default: a person is asked), refuse, user or allow,
	// for calls without a target, selector or amount (R21).
	NoArgs strictyaml.String `yaml:"no_args"`
	// Reads names the argument that holds a statement in SQL, and whose SQL it is. One
	// query that only reads is a read, whatever the effect: { /query: sqlite }
	Reads strictyaml.Map[strictyaml.String] `yaml:"reads"`
	// Parts names the same where one that only adds to a database is judged by its parts:
	// { /query: sqlite }
	Parts strictyaml.Map[strictyaml.String] `yaml:"parts"`
	// Cases gives effect and args per value of one argument:
	// - { /method: [get, list], effect: read }
	Cases strictyaml.Seq[caseFile] `yaml:"cases"`
	// OutputSchema is a JSON Schema, as YAML or as a text of JSON, where the
	// server publishes none.
	OutputSchema strictyaml.Anything `yaml:"output_schema"`
	// Notice: true says that what the act sends is notice of the change to those who stand in
	// the record that it changes, and no text of the caller's (R29).
	Notice strictyaml.Truth `yaml:"notice"`
	// Idempotent: false says that the same act again needs evidence that came
	// after it (R23).
	Idempotent strictyaml.Truth `yaml:"idempotent"`
	// IdempotencyKey is the argument by which the server knows the same act again, and
	// does it once: /key. The act is not idempotent but for that.
	IdempotencyKey strictyaml.String `yaml:"idempotency_key"`
	// Contested is accept (default), ask or refuse (R25).
	Contested strictyaml.String `yaml:"contested"`
	// Phrases are what the user's latest turn must hold one of for no_args: user (R21).
	Phrases strictyaml.Words `yaml:"phrases"`
	// Budgets bound the accepted calls of one session (R27).
	Budgets strictyaml.Seq[budgetFile] `yaml:"budgets"`
	// SameRecord lists arguments of one record, or several such lists. The first
	// of a list names the record (R37): [/order_id, /item_ids/*].
	SameRecord recordsFile `yaml:"same_record"`
	// Where lists the calls whose latest says where the act is done, each with the argument
	// that does, if it has one: server/tool#/url.
	Where strictyaml.Words `yaml:"where"`
	// Among is the argument that says on which of several pages the act is: /page_id.
	Among strictyaml.String `yaml:"among"`
	// Composites are the words in which the user writes several arguments as one
	// (R15): '{/owner}/{/repo}'.
	Composites strictyaml.Words `yaml:"composites"`
}

type budgetFile struct {
	strictyaml.Place
	// Calls is how many are accepted, or Sum the amount whose sum is at most Max.
	Calls strictyaml.Whole    `yaml:"calls"`
	Sum   strictyaml.String   `yaml:"sum"`
	Max   strictyaml.Anything `yaml:"max"`
	// Per is the argument for each value of which is counted alone.
	Per strictyaml.String `yaml:"per"`
	// Within is a time: 10m, 1h, 24h.
	Within strictyaml.String `yaml:"within"`
}

type argFile struct {
	strictyaml.Place
	// Role is target (default), selector, amount, time, enum, control,
	// content, query or secret.
	Role strictyaml.String `yaml:"role"`
	// Type is a canonical form of R17.
	Type strictyaml.String `yaml:"type"`
	// Collection names the set of records the value belongs to.
	Collection strictyaml.String `yaml:"collection"`
	// From lists the accepted sources; left out, the role's default.
	From strictyaml.Seq[sourceFile] `yaml:"from"`
	// Words are those after which the user's "13" is this argument's: "file 13"
	// (R8). The collection's name is one of them without being listed.
	Words strictyaml.Words `yaml:"words"`
	// Orders are those that what the user typed has to be what one of them is of (R9):
	// [delete, remove]. Who only names it orders nothing.
	Orders strictyaml.Words `yaml:"orders"`
	// Units are those that make the user's number this amount directly before them:
	// "50 shares" (R8, R11).
	Units strictyaml.Words `yaml:"units"`
	// Steers says that the argument of a read decides what runs, and is held to what its
	// line accepts as an act's is.
	Steers strictyaml.Truth `yaml:"steers"`
	// Sorts says that the argument of a read says how its list is sorted or written, and
	// leaves nothing out of it.
	Sorts strictyaml.Truth `yaml:"sorts"`
	// EndsDay says that the time ends something: a day that the user names ends at
	// 23:59 or at the midnight after (R10).
	EndsDay strictyaml.Truth `yaml:"ends_day"`
	// AnyHour says that the hour is the agent's where the user names a day and no hour (R10).
	AnyHour strictyaml.Truth `yaml:"any_hour"`
	// Site says that the control is where an act is done that the user orders by a phrase
	// (R21): the phrase need not say it.
	Site strictyaml.Truth `yaml:"place"`
	// Header says that the server sets a text of the agent's into the head of a message as it
	// stands (R17): behind a line break it would name others.
	Header strictyaml.Truth `yaml:"header"`
	// One says that the user may order one of what this names by what one is called: "add a customer" is of customers.
	One strictyaml.Truth `yaml:"one"`
	// Makes says that the act newly makes what this names, and fails where there is one
	// (R13): what it does not fail with is a member of Collection.
	Makes strictyaml.Truth `yaml:"makes"`
	// Shows says that the read fails where there is nothing that this names: what it does not
	// fail with is a member of Collection, as what a list shows.
	Shows strictyaml.Truth `yaml:"shows"`
	// Missing is what the result of such a read says right behind one of several that is not there.
	Missing strictyaml.String `yaml:"missing"`
	// In are the arguments that say in what it makes that (R36): later calls name it with
	// the same values there.
	In strictyaml.Words `yaml:"in"`
	// MaxItems bounds an array (R16).
	MaxItems strictyaml.Whole `yaml:"max_items"`
	// Normalise replaces the value by its canonical form (R17).
	Normalise strictyaml.Truth `yaml:"normalise"`
	// Content is local or open (R14).
	Content strictyaml.String `yaml:"content"`
	// Extensions are how a name may end that the agent makes up (R36): [.md, .txt].
	Extensions strictyaml.Words `yaml:"extensions"`
	// Begins are how a name may begin that the agent makes up where the act fails if there
	// is one (R36): [fix-, docs/].
	Begins strictyaml.Words `yaml:"begins"`
	// Forms are how an amount may follow from others (R11): a+b, a-b, a*b, a*p%,
	// a*p%+c, and round(a) from an output's.
	Forms strictyaml.Words `yaml:"forms"`
	// Max is the most that an amount may be (R11).
	Max strictyaml.Anything `yaml:"max"`
	// Of is the argument of whose record this one is (R37); a * in it is the index that
	// this one has.
	Of strictyaml.String `yaml:"of"`
	// By is a collection by whose members records are joined: this one is of a record
	// that a member names which stands in the record of Of.
	By strictyaml.String `yaml:"by"`
	// Agrees are arguments of which what shows the value says the same (R37): the record it
	// stands in, or what was asked for there, by the same name. A * is the index that this one has.
	Agrees strictyaml.Words `yaml:"agrees"`
	// Open lets this object have properties the schema does not name (R16).
	Open strictyaml.Truth `yaml:"open"`
	// Owner lists the constants the record's owner pointer may hold, or says user:
	// what he typed (R28).
	Owner ownerFile `yaml:"owner"`
}

type outputFile struct {
	strictyaml.Place
	// At is a pointer into structuredContent.
	At strictyaml.String `yaml:"at"`
	// In is text: the text of content block Block (0 is the first) is read
	// instead of structuredContent.
	In    strictyaml.String `yaml:"in"`
	Block strictyaml.Whole  `yaml:"block"`
	// Extract takes the text apart: lines, by Pattern; json, by Pointer (R33); start, by what
	// Pattern says that the text begins with. A
	// line ends where a name with a line feed in it says so: a list of names that
	// strangers can choose is never closed, and never system without Join.
	Extract strictyaml.String `yaml:"extract"`
	// Pattern is an RE2 that matches a whole line, or the start; its group 1 is the value.
	Pattern strictyaml.String `yaml:"pattern"`
	// Pointer names leaves of the JSON found in the text.
	Pointer strictyaml.String `yaml:"pointer"`
	// Join is the argument whose value is the directory of a single name: what
	// names another place voids the list. It belongs to extract: lines.
	Join strictyaml.String `yaml:"join"`
	// Label is system, party, external or model; required.
	Label strictyaml.String `yaml:"label"`
	// Type is a canonical form of R17.
	Type strictyaml.String `yaml:"type"`
	// Collection names the set of records the value belongs to.
	Collection strictyaml.String `yaml:"collection"`
	// Authoritative says that the server lists its own state here (R4).
	Authoritative strictyaml.Truth `yaml:"authoritative"`
	// Keys labels the keys of the object instead of a leaf.
	Keys strictyaml.Truth `yaml:"keys"`
	// Secret marks confidentiality (R30).
	Secret strictyaml.Truth `yaml:"secret"`
	// OneShot says that the tool issues the value for one act (R19): it vouches once,
	// within Lifetime of its result, where an argument names this output or has its
	// collection. Nothing else it stands in lets it vouch again.
	OneShot strictyaml.Truth `yaml:"one_shot"`
	// Lifetime is a time: 10m.
	Lifetime strictyaml.String `yaml:"lifetime"`
	// Creates marks what an act newly made (R13).
	Creates strictyaml.Truth `yaml:"creates"`
	// Location marks the link of where the call left what its server works on: of an act that
	// lists the tool in Where it says where that is done (R28).
	Location strictyaml.Truth `yaml:"location"`
	// Elements says that the text which a location begins lists what can be clicked on there (R28).
	Elements strictyaml.Truth `yaml:"elements"`
	// Matches is the argument of a search that shows every record in which this value
	// holds what is asked for there (R9): /query.
	Matches strictyaml.String `yaml:"matches"`
	// On is the argument that keeps that search, or the whole list, to the records of one day: /date.
	On strictyaml.String `yaml:"on"`
	// Names says that people call the record by this value (R14).
	Names strictyaml.Truth `yaml:"names"`
	// Unique says that the server gives this value to one record alone (R9).
	Unique strictyaml.Truth `yaml:"unique"`
	// LookedUp is the argument, /user, that names the one record the value is of, by a name
	// that no two have (R9).
	LookedUp strictyaml.String `yaml:"looked_up"`
	// Owner is a pointer, relative to the record, to its owner (R28).
	Owner strictyaml.String `yaml:"owner"`
	// Readers is a pointer, relative to the record, to who reads it beside its owner (R14).
	Readers strictyaml.String `yaml:"readers"`
	// Ranks say by what users tell the records of a whole list apart (R9):
	// [{ by: /size, most: [delete the largest file] }].
	Ranks strictyaml.Seq[rankFile] `yaml:"ranks"`
}

type rankFile struct {
	strictyaml.Place
	// By is a pointer, relative to the record, to a number or a time.
	By strictyaml.String `yaml:"by"`
	// Most and Least are what a user calls the one with the most, or the least, of it.
	Most  strictyaml.Words `yaml:"most"`
	Least strictyaml.Words `yaml:"least"`
}

// reader reads one policy: the YAML, its words and what they mean together.
type reader struct {
	*strictyaml.Reader
	outputAt map[*Contract][]*strictyaml.Node // where each output stands, for lint
	reaching []*strictyaml.Node               // orders of this contract that reach through their sentence
}

// Parse reads a policy. It returns either a policy or at least one
// fault: all there are, in the order of the file, each with its place and,
// where there is one, a hint. A word that is not of the format is a fault,
// never ignored. The file name is only repeated in the faults.
func Parse(file string, b []byte) (*Policy, []Fault) {
	r := &reader{Reader: strictyaml.New(file), outputAt: map[*Contract][]*strictyaml.Node{}}
	if root := r.Parse(b, "a policy has at least the key tools"); root != nil {
		var f policyFile
		r.Decode(root, &f)
		p := r.compile(&f)
		r.lint(p)
		r.lintMeaning(p, &f)
		if r.Count() == 0 {
			p.Source = slices.Clone(b)
			p.Digest = sha256.Sum256(b)
			p.Warnings = r.Warnings()
			return p, nil
		}
	}
	return nil, r.Faults()
}
