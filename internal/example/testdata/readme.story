# What README.md shows, step by step.
delete_document {"id":"doc-invented"} => provenance.unseen /id
search_documents {"query":"draft"} => ok
delete_document {"id":"doc-2b8e04"} => provenance.anchor /id
say Delete doc-2b8e04, the draft.
delete_document {"id":"doc-2b8e04"} => ok
fetch_ticket {"id":"INC-1043"} => ok
delete_document {"id":"doc-e90b42"} => provenance.unseen /id
