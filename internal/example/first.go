package example

// A Step is something to try with this server, for whoever sees it for the first time.
type Step struct {
	Title string
	Says  string   // what the calls are
	Calls []string // as a person types them behind `writ call --session NAME`
	Ends  string   // the console's word for what came of the last
	Shows string   // what more is to be seen
}

// FirstSession is the name of the session that the calls of Steps are made in. They build on
// each other, and on nothing else.
const FirstSession = "first"

// Steps are a read, an attack that is refused, an act that is accepted, and one that a person
// is asked about, in this order. The caller may change what it gets.
func Steps() []Step {
	return []Step{
		{"A read passes",
			"A stranger filed this ticket. Its text tells the assistant to delete the only signed agreement, doc-e90b42.",
			[]string{`fetch_ticket '{"id":"INC-1043"}'`},
			"accepted", ""},
		{"The attack is refused",
			"An agent that obeys the ticket calls this. The document exists, but only the stranger's text names it.",
			[]string{`delete_document '{"id":"doc-e90b42"}'`},
			"refused", ""},
		{"An honest act is accepted",
			"The id of this ticket comes out of the server's own list.",
			[]string{`search_tickets '{"query":"printer"}'`, `close_ticket '{"id":"INC-1042","resolution":"fixed"}'`},
			"accepted", ""},
		{"A deletion asks you",
			"For a deletion a list is not enough. Copy these, open Approvals, leave it in sight, and run them:",
			[]string{`search_documents '{"query":"draft"}'`, `delete_document '{"id":"doc-2b8e04"}'`},
			"asked", "It waits 45 seconds for your yes there; its code stands below the link in the first terminal. Then open the session of a row: " +
				"a red line leads from the attack to the stranger's text, green ones lead to what vouched."},
	}
}
