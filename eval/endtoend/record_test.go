package endtoend

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// recorded plays lines of an agent to a server that answers each with what
// answers gives for it, and returns what reached the server, what reached the
// agent, and the record.
func recorded(t *testing.T, agent string, answer func(line string) string) (server, back string, calls []*Call) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "record")
	var got, out bytes.Buffer
	serve := func(in io.Reader, out io.Writer) error {
		b, err := io.ReadAll(in)
		got.Write(b)
		for line := range strings.Lines(string(b)) {
			io.WriteString(out, answer(line))
		}
		return err
	}
	if err := Record(file, "toys", strings.NewReader(agent), &out, serve); err != nil {
		t.Fatal(err)
	}
	events, calls, err := readRecord(file)
	if err != nil || events < 1 {
		t.Fatalf("%d events: %v", events, err)
	}
	return got.String(), out.String(), calls
}

// TestRecord: every byte passes as it came, and each call is on record with
// its arguments, its end and its result, as bytes.
func TestRecord(t *testing.T) {
	const agent = `{"jsonrpc":"2.0","id":0,"method":"tools/list"}
{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{ "x" : "<1>" }}}
 [{"id":"2","method":"tools/call","params":{"name":"b","arguments":{}}},{"id":3,"method":"tools/call","params":{"name":"c"}}]
{"id":4,"method":"tools/call","params":{"name":"d","arguments":{"x":1e2}}}
{"id":5,"method":"tools/call","params":[1]}
not JSON
{"method":"tools/call","params":{"name":"last, without an end of line"}}`
	const back = `{"id":0,"result":{"tools":[]}}
{"method":"notifications/message","params":{}}
{"id":1,"result":{ "structuredContent":{"y":"<é>"} }}
[{"id":"2","result":{"isError":true}},{"id":3,"error":{"code":-32602}}]
{"id":99,"result":{"unasked":true}}
`
	server, got, calls := recorded(t, agent, func(line string) string {
		if strings.Contains(line, "tools/list") {
			return back
		}
		return ""
	})
	if server != agent || got != back {
		t.Errorf("bytes changed:\n%q\n%q", server, got)
	}
	want := []Call{
		{"toys", "a", `{ "x" : "<1>" }`, Done, `{ "structuredContent":{"y":"<é>"} }`, false, nil},
		{"toys", "b", `{}`, ToolError, `{"isError":true}`, false, nil},
		{"toys", "c", ``, Refused, ``, false, nil},
		{"toys", "d", `{"x":1e2}`, Unanswered, ``, false, nil},
		{"toys", "", ``, Unanswered, ``, false, nil},
		{"toys", "last, without an end of line", ``, Unanswered, ``, false, nil},
	}
	// What comes back is only on record if the call was there before: answers
	// race with the later lines, not with the call they answer.
	if len(calls) != len(want) {
		t.Fatalf("%d calls, want %d", len(calls), len(want))
	}
	for i, c := range calls {
		if !reflect.DeepEqual(*c, want[i]) {
			t.Errorf("call %d: %+v, want %+v", i, *c, want[i])
		}
	}
}

// TestRecordFirst: a call that cannot be written down does not reach the
// server.
func TestRecordFirst(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "record"))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	tap := &tap{file: f, server: "toys"}
	var server bytes.Buffer
	err = copyLines(&server, strings.NewReader(`{"id":1,"method":"tools/call","params":{"name":"a"}}`+"\n"), tap.from(fromAgent))
	if err == nil || server.Len() > 0 {
		t.Errorf("%q reached the server, error %v", server.String(), err)
	}
	if err := Record(t.TempDir(), "toys", strings.NewReader(""), io.Discard, nil); err == nil {
		t.Error("a recorder without a file to write to")
	}
	broken := errors.New("broken")
	serve := func(io.Reader, io.Writer) error { return broken }
	if err := Record(filepath.Join(t.TempDir(), "r"), "toys", strings.NewReader(""), io.Discard, serve); !errors.Is(err, broken) {
		t.Errorf("a server that does not start: %v", err)
	}
}

// TestDamagedRecord: an evaluation does not count what it cannot read.
func TestDamagedRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "record")
	if events, calls, err := readRecord(file); events != 0 || calls != nil || err != nil {
		t.Errorf("no record: %d %v %v", events, calls, err)
	}
	if err := os.WriteFile(file, []byte("{\"from\":\"agent\"}\n{\"from\":"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readRecord(file); err == nil {
		t.Error("half a line was read as a record")
	}
}

// FuzzRecord: whatever an agent and a server say, their bytes pass unchanged
// and in order, and each call that is one JSON message stands on record.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}`+"\n"), []byte(`{"id":1,"result":{}}`+"\n"))
	f.Add([]byte("[{}]\n\n{"), []byte("\xff\n"))
	f.Add([]byte(`{"id":{"a":1},"method":"tools/call"}`), []byte(`[[[]]]`))
	f.Fuzz(func(t *testing.T, asked, answered []byte) {
		file, err := os.CreateTemp(t.TempDir(), "record")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		tap := &tap{file: file, server: "toys"}
		var to, back bytes.Buffer
		if err := copyLines(&to, bytes.NewReader(asked), tap.from(fromAgent)); err != nil {
			t.Fatal(err)
		}
		if err := copyLines(&back, bytes.NewReader(answered), tap.from(fromServer)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(to.Bytes(), asked) || !bytes.Equal(back.Bytes(), answered) {
			t.Fatal("bytes changed")
		}
		_, calls, err := readRecord(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(asked) {
			var m struct {
				Method string
				Params struct{ Name string }
			}
			if json.Unmarshal(line, &m) != nil || m.Method != "tools/call" {
				continue
			}
			if !slices.ContainsFunc(calls, func(c *Call) bool { return c.Tool == m.Params.Name }) {
				t.Fatalf("the call of %q is not on record", m.Params.Name)
			}
		}
	})
}
