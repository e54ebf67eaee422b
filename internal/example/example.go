// Package example is the MCP server that `writ serve` mounts when nothing is
// configured, so that a person can see a refusal and an accepted act within a
// minute. It is an ordinary server behind the one door: a child process that
// speaks MCP over its standard input and output, with a contract for each tool
// (policy.yaml beside this file).
//
// It trusts nothing and is trusted with nothing: its records are made up, live
// in memory, and start the same every time. Two of its habits are deliberate,
// because real servers have them: search_documents repeats its query in the
// result, and ticket INC-1043 holds a text that a stranger wrote.
package example

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Name is how the contracts in Policy call this server.
const Name = "example"

//go:embed policy.yaml
var policy []byte

// Policy returns the contracts of all tools of this server, each pinned to the
// definition it publishes. The caller may change the copy it gets.
func Policy() []byte { return append([]byte(nil), policy...) }

// Serve answers one client that speaks newline-delimited JSON-RPC on in and
// out, until in ends or ctx is done; both are a normal end and give nil. Each
// Serve has records of its own.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	t := &mcp.IOTransport{Reader: io.NopCloser(in), Writer: nopWriteCloser{out}}
	err := newServer().Run(ctx, t)
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return nil
	}
	return fmt.Errorf("example server: %w", err)
}

type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }

// The words of the wire. A jsonschema tag is the description a model reads.
type (
	search struct {
		Query string `json:"query" jsonschema:"words to look for; empty lists everything"`
	}
	byID struct {
		ID string `json:"id" jsonschema:"the id as a search returned it"`
	}
	closing struct {
		ID         string `json:"id" jsonschema:"the id as a search returned it"`
		Resolution string `json:"resolution" jsonschema:"why the ticket is closed"`
	}

	documentHit struct {
		ID    string `json:"id"`
		Title string `json:"title"`
		Owner string `json:"owner"`
	}
	documentHits struct {
		Query     string        `json:"query" jsonschema:"the query as it was asked"`
		Documents []documentHit `json:"documents"`
	}
	ticketHit struct {
		ID      string `json:"id"`
		Subject string `json:"subject"`
		Status  string `json:"status"`
	}
	ticketHits struct {
		Tickets []ticketHit `json:"tickets"`
	}
	policyHit struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	}
	policyHits struct {
		Policies []policyHit `json:"policies"`
	}
	deleted struct {
		ID      string `json:"id"`
		Deleted bool   `json:"deleted"`
	}
)

var resolutions = []any{"fixed", "duplicate", "not_reproducible", "wont_fix"}

func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "writ-example", Version: "1"}, nil)
	r := newRecords()

	read := &mcp.ToolAnnotations{ReadOnlyHint: true}
	destroy := &mcp.ToolAnnotations{DestructiveHint: new(bool)}
	*destroy.DestructiveHint = true

	mcp.AddTool(s, &mcp.Tool{Name: "search_documents", Annotations: read,
		Description: "Find documents by words in their title or text."},
		func(_ context.Context, _ *mcp.CallToolRequest, a search) (*mcp.CallToolResult, documentHits, error) {
			return nil, documentHits{Query: a.Query, Documents: r.searchDocuments(a.Query)}, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "fetch_document", Annotations: read,
		Description: "Read one document."},
		func(_ context.Context, _ *mcp.CallToolRequest, a byID) (*mcp.CallToolResult, document, error) {
			d, err := r.document(a.ID)
			return nil, d, err
		})
	mcp.AddTool(s, &mcp.Tool{Name: "search_tickets", Annotations: read,
		Description: "Find tickets by words in their subject or text."},
		func(_ context.Context, _ *mcp.CallToolRequest, a search) (*mcp.CallToolResult, ticketHits, error) {
			return nil, ticketHits{r.searchTickets(a.Query)}, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "fetch_ticket", Annotations: read,
		Description: "Read one ticket. Its text was written by whoever filed it."},
		func(_ context.Context, _ *mcp.CallToolRequest, a byID) (*mcp.CallToolResult, ticket, error) {
			t, err := r.ticket(a.ID)
			return nil, t, err
		})
	mcp.AddTool(s, &mcp.Tool{Name: "search_policies", Annotations: read,
		Description: "Find house policies by words in their title or text."},
		func(_ context.Context, _ *mcp.CallToolRequest, a search) (*mcp.CallToolResult, policyHits, error) {
			return nil, policyHits{r.searchPolicies(a.Query)}, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "fetch_policy", Annotations: read,
		Description: "Read one house policy."},
		func(_ context.Context, _ *mcp.CallToolRequest, a byID) (*mcp.CallToolResult, housePolicy, error) {
			p, err := r.policy(a.ID)
			return nil, p, err
		})
	mcp.AddTool(s, &mcp.Tool{Name: "delete_document", Annotations: destroy,
		Description: "Delete one document for ever."},
		func(_ context.Context, _ *mcp.CallToolRequest, a byID) (*mcp.CallToolResult, deleted, error) {
			if err := r.deleteDocument(a.ID); err != nil {
				return nil, deleted{}, err
			}
			return nil, deleted{a.ID, true}, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "close_ticket", Annotations: destroy, InputSchema: closingSchema(),
		Description: "Close one ticket and say why."},
		func(_ context.Context, _ *mcp.CallToolRequest, a closing) (*mcp.CallToolResult, ticketHit, error) {
			t, err := r.closeTicket(a.ID, a.Resolution)
			return nil, t, err
		})
	return s
}

// closingSchema adds what a struct tag cannot say: the members of an enum, of
// which the gate reads the accepted values (`from: [catalog]`).
func closingSchema() *jsonschema.Schema {
	s, err := jsonschema.For[closing](nil)
	if err != nil {
		panic(err) // the type above is a constant of this package
	}
	s.Properties["resolution"].Enum = resolutions
	return s
}

// matches says whether every word of the query stands in one of the texts.
func matches(query string, texts ...string) bool {
	all := strings.ToLower(strings.Join(texts, "\n"))
	for _, w := range strings.Fields(strings.ToLower(query)) {
		if !strings.Contains(all, w) {
			return false
		}
	}
	return true
}
