# R9: a document is destroyed if the user named it, by its id or by its title
# where all of them were listed.
say Please delete the Onboarding guide.
search_documents {"query":"agreement"} => ok
delete_document {"id":"doc-e90b42"} => provenance.anchor /id
# One that a search of the model's brought up might have a twin it did not.
search_documents {"query":"laptop"} => ok
delete_document {"id":"doc-c56d17"} => provenance.anchor /id
search_documents {"query":""} => ok
delete_document {"id":"doc-e90b42"} => provenance.anchor /id
delete_document {"id":"doc-c56d17"} => ok

# All of an owner's, whoever asks: the title and the owner are external here.
new session
say Delete all documents of finance.
search_documents {"query":""} => ok
delete_document {"id":"doc-7f3a91"} => provenance.anchor /id
