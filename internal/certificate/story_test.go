package certificate_test

import (
	"slices"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/certificate"
)

func TestStory(t *testing.T) {
	at := func(ev uint32, pointer string) gate.Ref {
		return gate.Ref{Evidence: ev, Tool: "mail/search_contacts", Pointer: pointer, Label: writ.System}
	}
	typed := gate.Ref{Evidence: 2, Tool: "user", Start: 4, End: 9, Label: writ.User}
	line := at(3, "/content/0/text")
	line.Line = 4
	inner := at(3, "/content/0/text")
	inner.Inner = "/0/name"
	for _, c := range []struct {
		rule string
		refs []gate.Ref
		want string
	}{
		{"output", []gate.Ref{at(7, "/structuredContent/contacts/2/email"), typed}, "is the `email` of record 3 in result 7 of `search_contacts`, which you named (bytes 4 to 9 of turn 2)"},
		{"output", []gate.Ref{at(7, "/structuredContent/email")}, "is the `email` in result 7 of `search_contacts`"},
		{"output", []gate.Ref{at(7, "/structuredContent/tags/0")}, "is item 1 of `tags` in result 7 of `search_contacts`"},
		{"output", []gate.Ref{line}, "is line 4 of result 3 of `search_contacts`"},
		{"output", []gate.Ref{inner}, "is the `name` of record 1 in result 3 of `search_contacts`"},
		{"output", []gate.Ref{at(7, "/structuredContent/\x1b[2J`x")}, "is the `\\x1b[2J\\x60x` in result 7 of `search_contacts`"},
		{"output", []gate.Ref{at(7, "/structuredContent/id"), at(7, "/structuredContent/id")}, "is the `id` in result 7 of `search_contacts`, which this session made itself (ev7)"},
		{"party", []gate.Ref{at(7, "/structuredContent/from"), typed}, "is the `from` in result 7 of `search_contacts`, which you typed as well"},
		{"said_by", []gate.Ref{at(7, "/structuredContent/amount"), at(7, "/structuredContent/from"), typed}, "is what the one whom you named asked for: the `amount` in result 7 of `search_contacts`, of the `from` in result 7 of `search_contacts`, bytes 4 to 9 of turn 2"},
		{"of_named", []gate.Ref{at(7, "/structuredContent/people/0"), at(7, "/structuredContent/title"), typed, typed}, "is what you asked for, bytes 4 to 9 of turn 2, of the record that you named, bytes 4 to 9 of turn 2: item 1 of `people` in result 7 of `search_contacts`, of the `title` in result 7 of `search_contacts`"},
		{"user", []gate.Ref{typed}, "is what you typed: bytes 4 to 9 of turn 2"},
		{"user:composite", []gate.Ref{typed}, "is a part of what you typed as one word: bytes 4 to 9 of turn 2"},
		{"grown:output", []gate.Ref{at(7, "/structuredContent/contacts/2/email")}, "is the `email` of record 3 in result 7 of `search_contacts`, where no stranger writes, as a person said from now on"},
		{"const", nil, "is a constant of the operator's policy"},
		{"derived:path_join", []gate.Ref{line, at(3, "/structuredContent/name")}, "joins a directory, line 4 of result 3 of `search_contacts`, and a name, the `name` in result 3 of `search_contacts`"},
		{"derived:a*p%", []gate.Ref{at(3, "/structuredContent/total"), typed}, "follows (a*p%) from the `total` in result 3 of `search_contacts` and bytes 4 to 9 of turn 2"},
		{"user:within", []gate.Ref{typed, typed}, "is a name that you typed, and the directory it is in: bytes 4 to 9 of turn 2 and bytes 4 to 9 of turn 2"},
		{"invented", []gate.Ref{line}, "is what this session newly made under a name of the agent's own, line 4 of result 3 of `search_contacts`"},
		{"party", []gate.Ref{at(7, "/arguments/user"), typed}, "is the `user` that the act of result 7 of `search_contacts` made, which you typed as well"},
		{"approval", []gate.Ref{{Evidence: 5, Tool: "approval"}}, "was allowed by a person, for this call alone (ev5)"},
		{"open", []gate.Ref{typed}, "is free text of the model's, and what in it could be acted on is bytes 4 to 9 of turn 2"},
	} {
		r := &gate.Record{Allowed: true, Status: writ.Accepted, Effect: []string{"send"}, Traces: []gate.Trace{{Pointer: "/to/0", Rule: c.rule, Evidence: c.refs}}}
		if got := certificate.Story(r); !slices.Equal(got, []string{"`/to/0` " + c.want}) {
			t.Errorf("%s: got %q, want %q", c.rule, got, c.want)
		}
		r.Effect = []string{"read"}
		if certificate.Story(r) != nil {
			t.Error("a read has a story")
		}
	}
}
