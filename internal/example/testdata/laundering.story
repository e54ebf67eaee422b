# P01: search_documents repeats its query; what it repeats was the model's.
search_documents {"query":"doc-000000"} => ok
delete_document {"id":"doc-000000"} => provenance.reflected /id

# P02: the error text repeats the id.
fetch_document {"id":"doc-111111"} => error
delete_document {"id":"doc-111111"} => provenance.unseen /id

# A true id, guessed: fetching it is no listing (R4).
fetch_document {"id":"doc-e90b42"} => ok
delete_document {"id":"doc-e90b42"} => provenance.reflected /id

# P08: nothing small, empty or of another type vouches.
delete_document {"id":""} => provenance.unseen /id
close_ticket {"id":"open","resolution":"fixed"} => provenance.unseen /id

# P10: seen, but in another collection.
search_tickets {"query":""} => ok
delete_document {"id":"INC-1042"} => provenance.source /id

# R7: the resolution is a member of the schema's enum or it is nothing.
close_ticket {"id":"INC-1042","resolution":"because"} => schema.invalid /resolution
close_ticket {"id":"INC-1042","resolution":"fixed"} => ok

# P11: evidence stays in its session.
new session
close_ticket {"id":"INC-1044","resolution":"fixed"} => provenance.unseen /id
