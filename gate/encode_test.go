package gate_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"testing/quick"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
)

// TestRecordIsCanonical holds what is written by hand to the JSON of the same structure.
func TestRecordIsCanonical(t *testing.T) {
	canonical := func(v any) []byte {
		raw, err := json.Marshal(v)
		if err == nil {
			raw, err = strictjson.Canonical(raw)
		}
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	err := quick.Check(func(r gate.Record) bool {
		for i := range r.Failures { // no number is beyond what every reader of JSON reads
			r.Failures[i].Line = int(int32(r.Failures[i].Line))
		}
		for i := range r.Traces {
			for k := range r.Traces[i].Evidence {
				e := &r.Traces[i].Evidence[k]
				e.Start, e.End, e.Line = int(int32(e.Start)), int(int32(e.End)), int(int32(e.Line))
			}
		}
		r.Version = int(int32(r.Version))
		got, want := r.Bytes(), canonical(&r)
		if !bytes.Equal(got, want) {
			t.Errorf("%s\n%s", got, want)
			return false
		}
		found := canonical(struct {
			Failures  any    `json:"failures,omitempty"`
			Forwarded string `json:"forwarded,omitempty"`
			Look      bool   `json:"look,omitempty"`
			Next      uint32 `json:"next,omitempty"`
			Traces    any    `json:"traces,omitempty"`
		}{some(r.Failures), r.Forwarded, r.Look, r.Next, some(r.Traces)})
		return bytes.Equal(append(r.AppendFound([]byte{'{'}), '}'), found)
	}, &quick.Config{MaxCount: 300})
	if err != nil {
		t.Error(err)
	}
}

// some is nil for what is empty.
func some(v any) any {
	if reflect.ValueOf(v).Len() == 0 {
		return nil
	}
	return v
}
