package claim

import (
	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// TypedNote stands beside a result that is returned raw because TypedOutput
// stopped it. Such a result is never summarised.
const TypedNote = "Typed parsing blocked"

// TypedOutput returns the structuredContent of a recorded tools/call result,
// as a sub-slice of it, only if the result is a strict JSON object, isError is
// absent or false, structuredContent is there, and validate accepts it (INV-4).
// A nil validate means that no schema is registered for the tool.
func TypedOutput(result []byte, validate func(structured []byte) bool) ([]byte, *Stop) {
	stop := func(r writ.Reason, pointer, need string) ([]byte, *Stop) {
		return nil, because(StageTypedOutput, r, pointer, need)
	}
	if validate == nil {
		return stop(writ.TypedUnregistered, "", "a tool with an output schema, its own or the operator's")
	}
	if strictjson.Check(result, strictjson.Result) != nil || strictjson.KindOf(result) != strictjson.Object {
		return stop(writ.TypedSyntax, "", "a result that is one strict JSON object")
	}
	if e := strictjson.Get(result, "isError"); e != nil && string(e) != "false" {
		return stop(writ.TypedIsError, "/isError", "a result that is no error")
	}
	out := strictjson.Get(result, "structuredContent")
	if out == nil || strictjson.KindOf(out) == strictjson.Null {
		return stop(writ.TypedMissing, "/structuredContent", "a result with structuredContent")
	}
	if !validate(out) {
		return stop(writ.TypedSchema, "/structuredContent", "structuredContent that satisfies the tool's output schema")
	}
	return out, nil
}
