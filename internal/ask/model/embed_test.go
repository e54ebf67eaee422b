package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

// TestEmbed: one vector of numbers for each text, in the texts' order, or an error
// that repeats nothing of the endpoint's.
func TestEmbed(t *testing.T) {
	const good = `{"object":"list","data":[{"object":"embedding","index":1,"embedding":[0,-1.5e0]},{"object":"embedding","index":0,"embedding":[0.25,1]}],"model":"m1"}`
	long := strings.Repeat("1,", mostDimensions) + "1"
	for name, c := range map[string]struct {
		status       int
		header, body string
		want         [][]float32
	}{
		"good":               {200, "", good, [][]float32{{0.25, 1}, {0, -1.5}}},
		"too few":            {200, "", `{"data":[{"index":0,"embedding":[1]}]}`, nil},
		"too many":           {200, "", `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1]},{"index":2,"embedding":[1]}]}`, nil},
		"one twice":          {200, "", `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[2]}]}`, nil},
		"below all":          {200, "", `{"data":[{"index":0,"embedding":[1]},{"index":-1,"embedding":[2]}]}`, nil},
		"in no order":        {200, "", `{"data":[{"embedding":[1]},{"embedding":[2]}]}`, nil},
		"of two lengths":     {200, "", `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[2,3]}]}`, nil},
		"empty":              {200, "", `{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}`, nil},
		"null":               {200, "", `{"data":[{"index":0,"embedding":null},{"index":1,"embedding":null}]}`, nil},
		"too long":           {200, "", `{"data":[{"index":0,"embedding":[` + long + `]},{"index":1,"embedding":[` + long + `]}]}`, nil},
		"no numbers":         {200, "", `{"data":[{"index":0,"embedding":["1"]},{"index":1,"embedding":["1"]}]}`, nil},
		"base64":             {200, "", `{"data":[{"index":0,"embedding":"AACAPw=="},{"index":1,"embedding":"AACAPw=="}]}`, nil},
		"NaN":                {200, "", `{"data":[{"index":0,"embedding":[NaN]},{"index":1,"embedding":[1]}]}`, nil},
		"beyond a float":     {200, "", `{"data":[{"index":0,"embedding":[1e39]},{"index":1,"embedding":[1]}]}`, nil},
		"no data":            {200, "", `{"object":"list"}`, nil},
		"a list":             {200, "", `[` + good + `]`, nil},
		"two keys":           {200, "", strings.Replace(good, `{"object"`, `{"data":[],"object"`, 1), nil},
		"more than 4 MiB":    {200, "", good + strings.Repeat(" ", wireBytes), nil},
		"a stream":           {200, "text/event-stream", "data: " + good + "\n\ndata: [DONE]\n\n", nil},
		"HTML":               {200, "text/html", good, nil},
		"500":                {500, "", good, nil},
		"401":                {401, "", good, nil},
		"a redirect":         {307, "", good, nil},
		"moved for good":     {308, "", good, nil},
		"no content at all ": {204, "", "", nil},
	} {
		requests := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			var body map[string]any
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/embeddings" ||
				r.Header.Get("Authorization") != "Bearer key-1" || !reflect.DeepEqual(body, map[string]any{"model": "m1", "input": []any{"a", "b"}}) {
				t.Errorf("%s: %s %s %v %v", name, r.Method, r.URL, r.Header, body)
			}
			w.Header().Set("Content-Type", "application/json")
			if c.header != "" {
				w.Header().Set("Content-Type", c.header)
			}
			w.Header().Set("Location", "/v1/embeddings")
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}))
		got, err := NewEmbedder(Endpoint{URL: s.URL + "/v1/", Model: "m1", Key: "key-1"}).Embed(t.Context(), []string{"a", "b"})
		s.Close()
		if (err == nil) != (c.want != nil) || !reflect.DeepEqual(got, c.want) || requests != 1 {
			t.Errorf("%s: %v, %v, in %d requests", name, got, err, requests)
		}
		if err != nil && (strings.Contains(err.Error(), "key-1") || strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), "embedding\"")) {
			t.Errorf("%s: the error repeats what is not for it: %v", name, err)
		}
	}
}
