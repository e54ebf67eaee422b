package memoryserver

import (
	"regexp"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/strictjson"
)

// taskForm is the form of a task's name.
const taskForm = `^[A-Za-z0-9._:-]{1,128}$`

var taskName = regexp.MustCompile(taskForm)

// bindTask settles the task a call works on: the one its host named, else the
// session itself. What is no name of a task is refused, never left out: what
// belongs apart would be put together.
func bindTask(by *gateway.Caller) *writ.Rejection {
	if by.Task == nil {
		by.Task = strictjson.Quote(by.Session)
	}
	if task, ok := strictjson.Text(by.Task); ok && taskName.MatchString(task) {
		return nil
	}
	return refuse(writ.SchemaInvalid, "", "a task in _meta, under "+gateway.MetaTask+", of 1 to 128 letters, digits, . _ : or -").rejection
}

// taskOf is the task of a call, once it is bound.
func taskOf(by gateway.Caller) string {
	task, _ := strictjson.Text(by.Task)
	return task
}
