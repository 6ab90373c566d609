BEGIN TRANSACTION;
CREATE TABLE demands(
    seq integer primary key autoincrement, key text unique not null, round text not null, item_id text not null,
    attempt integer not null, serial integer not null, base_annotation integer not null, base_revision text not null,
    gold text not null, overlap integer not null,
    terms text not null default '');
INSERT INTO "demands" VALUES(1,'d5e4f33fb52b41c57b6a','annotate','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',0,0,0,'','',1,'69a54bd90f7175e04f57');
INSERT INTO "demands" VALUES(2,'e3cf1418caf5b394d42b','annotate','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb',0,0,0,'','',1,'69a54bd90f7175e04f57');
INSERT INTO "demands" VALUES(3,'b8e8731fd15f13f7cf9e','annotate','cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc',0,0,0,'','',1,'69a54bd90f7175e04f57');
INSERT INTO "demands" VALUES(4,'1081cc07805f438fa319','cross_check','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',0,0,4,'6dd87b475533ca16dc3bde2ed8f74bd5ab1bd2d3323339274d0fc2ce2bb646f6','',2,'82ac9eac1e546e4131e8');
INSERT INTO "demands" VALUES(5,'164c8f3f58e94126fc35','cross_check','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb',0,0,5,'6dd87b475533ca16dc3bde2ed8f74bd5ab1bd2d3323339274d0fc2ce2bb646f6','',2,'82ac9eac1e546e4131e8');
INSERT INTO "demands" VALUES(6,'e52d294c3e5da448c47a','cross_check','cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc',0,0,6,'6dd87b475533ca16dc3bde2ed8f74bd5ab1bd2d3323339274d0fc2ce2bb646f6','',2,'82ac9eac1e546e4131e8');
INSERT INTO "demands" VALUES(7,'160711d6bd8e890e0137','accept','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',0,0,13,'fdb0bf3ad3bed3751ad5f06ac617232ee174ae5174050b32cda54bfbd1db0c2c','',3,'72593a91748e215ce1b8');
INSERT INTO "demands" VALUES(8,'679a18fdac1a0764cb6a','accept','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb',0,0,14,'fdb0bf3ad3bed3751ad5f06ac617232ee174ae5174050b32cda54bfbd1db0c2c','',3,'72593a91748e215ce1b8');
INSERT INTO "demands" VALUES(9,'fbfbdd08b68f6eb6af83','accept','cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc',0,0,15,'fdb0bf3ad3bed3751ad5f06ac617232ee174ae5174050b32cda54bfbd1db0c2c','',3,'72593a91748e215ce1b8');
INSERT INTO "demands" VALUES(10,'11dc38aa100db22052ad','rework','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb',1,0,26,'a5b9ecd7a9663111978128950859cbbff90599a8ae2acfcc85f695257418e5a6','',2,'16a13cc6f809d8399cc2');
CREATE TABLE gone(annotation_id integer primary key);
CREATE TABLE hits(place integer primary key, raw text not null);
CREATE TABLE in_force(round text primary key, terms text not null);
INSERT INTO "in_force" VALUES('annotate','69a54bd90f7175e04f57');
INSERT INTO "in_force" VALUES('cross_check','82ac9eac1e546e4131e8');
INSERT INTO "in_force" VALUES('accept','72593a91748e215ce1b8');
INSERT INTO "in_force" VALUES('rework','16a13cc6f809d8399cc2');
CREATE TABLE people(person_id integer primary key, email text not null, name text not null,
    role text not null);
INSERT INTO "people" VALUES(1,'admin@example.com','admin','admin');
INSERT INTO "people" VALUES(2,'ann@example.com','Ann','annotator');
INSERT INTO "people" VALUES(3,'bob@example.com','Bob','annotator');
INSERT INTO "people" VALUES(4,'cem@example.com','Cem','annotator');
INSERT INTO "people" VALUES(5,'eve@example.com','Eve','expert');
INSERT INTO "people" VALUES(6,'fay@example.com','Fay','expert');
CREATE TABLE projects(
    round text primary key, project_id integer not null, last_task integer not null, watermark text not null);
INSERT INTO "projects" VALUES('annotate',1,3,'2026-05-01T10:08:00+00:00');
INSERT INTO "projects" VALUES('cross_check',2,11,'2026-05-01T10:08:00+00:00');
INSERT INTO "projects" VALUES('accept',3,22,'2026-05-01T10:08:00+00:00');
INSERT INTO "projects" VALUES('rework',4,27,'2026-05-01T10:08:00+00:00');
CREATE TABLE retired(
    task_id integer primary key, key text not null);
CREATE TABLE revisions(
    seq integer primary key autoincrement, annotation_id integer not null, digest text not null,
    task_id integer not null, raw text not null,
    roles text,
    unique(annotation_id, digest));
INSERT INTO "revisions" VALUES(1,4,'6dd87b475533ca16dc3bde2ed8f74bd5ab1bd2d3323339274d0fc2ce2bb646f6',1,'{"completed_by": 2, "created_at": "2026-05-01T10:01:00+00:00", "id": 4, "lead_time": 5.0, "result": [{"from_name": "box", "image_rotation": 0, "original_height": 3000, "original_width": 4000, "type": "rectanglelabels", "value": {"height": 3, "rectanglelabels": ["target"], "rotation": 0, "width": 4, "x": 10, "y": 20}}, {"from_name": "category", "type": "choices", "value": {"choices": ["ocr"]}}, {"from_name": "question", "type": "textarea", "value": {"text": ["What does the sign say?"]}}, {"from_name": "answer", "type": "textarea", "value": {"text": ["42"]}}], "updated_by": 2, "was_cancelled": false}','annotator');
INSERT INTO "revisions" VALUES(2,5,'6dd87b475533ca16dc3bde2ed8f74bd5ab1bd2d3323339274d0fc2ce2bb646f6',2,'{"completed_by": 2, "created_at": "2026-05-01T10:02:00+00:00", "id": 5, "lead_time": 5.0, "result": [{"from_name": "box", "image_rotation": 0, "original_height": 3000, "original_width": 4000, "type": "rectanglelabels", "value": {"height": 3, "rectanglelabels": ["target"], "rotation": 0, "width": 4, "x": 10, "y": 20}}, {"from_name": "category", "type": "choices", "value": {"choices": ["ocr"]}}, {"from_name": "question", "type": "textarea", "value": {"text": ["What does the sign say?"]}}, {"from_name": "answer", "type": "textarea", "value": {"text": ["42"]}}], "updated_by": 2, "was_cancelled": false}','annotator');
INSERT INTO "revisions" VALUES(3,6,'6dd87b475533ca16dc3bde2ed8f74bd5ab1bd2d3323339274d0fc2ce2bb646f6',3,'{"completed_by": 2, "created_at": "2026-05-01T10:03:00+00:00", "id": 6, "lead_time": 5.0, "result": [{"from_name": "box", "image_rotation": 0, "original_height": 3000, "original_width": 4000, "type": "rectanglelabels", "value": {"height": 3, "rectanglelabels": ["target"], "rotation": 0, "width": 4, "x": 10, "y": 20}}, {"from_name": "category", "type": "choices", "value": {"choices": ["ocr"]}}, {"from_name": "question", "type": "textarea", "value": {"text": ["What does the sign say?"]}}, {"from_name": "answer", "type": "textarea", "value": {"text": ["42"]}}], "updated_by": 2, "was_cancelled": false}','annotator');
INSERT INTO "revisions" VALUES(5,8,'4b135b7edd22dea448b6ee30ff3d731c426743a6c975f5e700bf4082fcb66fc9',7,'{"completed_by": 2, "ground_truth": false, "id": 8, "lead_time": null, "result": [], "was_cancelled": false}','annotator');
INSERT INTO "revisions" VALUES(6,13,'fdb0bf3ad3bed3751ad5f06ac617232ee174ae5174050b32cda54bfbd1db0c2c',7,'{"completed_by": 3, "created_at": "2026-05-01T10:04:00+00:00", "id": 13, "lead_time": 5.0, "result": [{"from_name": "blind_answer", "type": "textarea", "value": {"text": ["42"]}}, {"from_name": "verdict", "type": "choices", "value": {"choices": ["accept"]}}, {"from_name": "box", "image_rotation": 0, "original_height": 3000, "original_width": 4000, "type": "rectanglelabels", "value": {"height": 3, "rectanglelabels": ["target"], "rotation": 0, "width": 4, "x": 10, "y": 20}}], "updated_by": 3, "was_cancelled": false}','annotator');
INSERT INTO "revisions" VALUES(7,10,'4b135b7edd22dea448b6ee30ff3d731c426743a6c975f5e700bf4082fcb66fc9',9,'{"completed_by": 2, "ground_truth": false, "id": 10, "lead_time": null, "result": [], "was_cancelled": false}','annotator');
INSERT INTO "revisions" VALUES(8,14,'fdb0bf3ad3bed3751ad5f06ac617232ee174ae5174050b32cda54bfbd1db0c2c',9,'{"completed_by": 3, "created_at": "2026-05-01T10:05:00+00:00", "id": 14, "lead_time": 5.0, "result": [{"from_name": "blind_answer", "type": "textarea", "value": {"text": ["42"]}}, {"from_name": "verdict", "type": "choices", "value": {"choices": ["accept"]}}, {"from_name": "box", "image_rotation": 0, "original_height": 3000, "original_width": 4000, "type": "rectanglelabels", "value": {"height": 3, "rectanglelabels": ["target"], "rotation": 0, "width": 4, "x": 10, "y": 20}}], "updated_by": 3, "was_cancelled": false}','annotator');
INSERT INTO "revisions" VALUES(9,12,'4b135b7edd22dea448b6ee30ff3d731c426743a6c975f5e700bf4082fcb66fc9',11,'{"completed_by": 2, "ground_truth": false, "id": 12, "lead_time": null, "result": [], "was_cancelled": false}','annotator');
INSERT INTO "revisions" VALUES(10,15,'fdb0bf3ad3bed3751ad5f06ac617232ee174ae5174050b32cda54bfbd1db0c2c',11,'{"completed_by": 3, "created_at": "2026-05-01T10:06:00+00:00", "id": 15, "lead_time": 5.0, "result": [{"from_name": "blind_answer", "type": "textarea", "value": {"text": ["42"]}}, {"from_name": "verdict", "type": "choices", "value": {"choices": ["accept"]}}, {"from_name": "box", "image_rotation": 0, "original_height": 3000, "original_width": 4000, "type": "rectanglelabels", "value": {"height": 3, "rectanglelabels": ["target"], "rotation": 0, "width": 4, "x": 10, "y": 20}}], "updated_by": 3, "was_cancelled": false}','annotator');
INSERT INTO "revisions" VALUES(13,17,'4b135b7edd22dea448b6ee30ff3d731c426743a6c975f5e700bf4082fcb66fc9',16,'{"completed_by": 2, "ground_truth": false, "id": 17, "lead_time": null, "result": [], "was_cancelled": false}','annotator');
INSERT INTO "revisions" VALUES(14,18,'4f2f78bbdd1b81d5fc5848c78ef9916f73e3731ec934846366f13d56560fec72',16,'{"completed_by": 3, "ground_truth": false, "id": 18, "lead_time": null, "result": [], "was_cancelled": false}','annotator');
INSERT INTO "revisions" VALUES(15,25,'5a441f7d4f8b7c6ca1b75e9180c88eaebeca0aaffa91f27c70f1d0bf74672ae5',16,'{"completed_by": 5, "created_at": "2026-05-01T10:07:00+00:00", "id": 25, "lead_time": 5.0, "result": [{"from_name": "blind_answer", "type": "textarea", "value": {"text": ["42"]}}, {"from_name": "verdict", "type": "choices", "value": {"choices": ["accept"]}}, {"from_name": "box", "image_rotation": 0, "original_height": 3000, "original_width": 4000, "type": "rectanglelabels", "value": {"height": 3, "rectanglelabels": ["target"], "rotation": 0, "width": 4, "x": 10, "y": 20}}], "updated_by": 5, "was_cancelled": false}','expert');
INSERT INTO "revisions" VALUES(16,20,'4b135b7edd22dea448b6ee30ff3d731c426743a6c975f5e700bf4082fcb66fc9',19,'{"completed_by": 2, "ground_truth": false, "id": 20, "lead_time": null, "result": [], "was_cancelled": false}','annotator');
INSERT INTO "revisions" VALUES(17,21,'4f2f78bbdd1b81d5fc5848c78ef9916f73e3731ec934846366f13d56560fec72',19,'{"completed_by": 3, "ground_truth": false, "id": 21, "lead_time": null, "result": [], "was_cancelled": false}','annotator');
INSERT INTO "revisions" VALUES(18,26,'a5b9ecd7a9663111978128950859cbbff90599a8ae2acfcc85f695257418e5a6',19,'{"completed_by": 5, "created_at": "2026-05-01T10:08:00+00:00", "id": 26, "lead_time": 5.0, "result": [{"from_name": "blind_answer", "type": "textarea", "value": {"text": ["42"]}}, {"from_name": "verdict", "type": "choices", "value": {"choices": ["reject"]}}, {"from_name": "reason", "type": "choices", "value": {"choices": ["ambiguous"]}}], "updated_by": 5, "was_cancelled": false}','expert');
CREATE TABLE roles(
    seq integer primary key autoincrement, person_id integer not null, role text not null,
    last_demand integer);
INSERT INTO "roles" VALUES(1,1,'admin',NULL);
INSERT INTO "roles" VALUES(2,2,'annotator',NULL);
INSERT INTO "roles" VALUES(3,3,'annotator',NULL);
INSERT INTO "roles" VALUES(4,4,'annotator',NULL);
INSERT INTO "roles" VALUES(5,5,'expert',NULL);
INSERT INTO "roles" VALUES(6,6,'expert',NULL);
CREATE TABLE settled(only_row integer primary key check (only_row = 1), digest text not null);
INSERT INTO "settled" VALUES(1,'93a5e4cd161d447952ec73c8347c08d7e5c70a793fb0a3e36267cdadaa80f8ce');
CREATE TABLE tasks(key text primary key, project_id integer not null, task_id integer not null,
    is_ready integer not null,
    data text not null default '', is_lost integer not null default 0);
INSERT INTO "tasks" VALUES('d5e4f33fb52b41c57b6a',1,1,1,'46b156276182c63ad70993ddcf1a5bf841a6e683517d7292912cbfd833d2f687',0);
INSERT INTO "tasks" VALUES('e3cf1418caf5b394d42b',1,2,1,'487ab7af21d0e4e4dada0fb75fafe919f12df55885bf96fadb6ebcbc168e45b7',0);
INSERT INTO "tasks" VALUES('b8e8731fd15f13f7cf9e',1,3,1,'ad512d07627c8b3bd1dcc8db118c93dfae637c71e21ffd4a9263c9c3023a9e9e',0);
INSERT INTO "tasks" VALUES('1081cc07805f438fa319',2,7,1,'735e79f38c92800f8f49cda5928fce29c8e39f510227dc4985a2c7e1e5144d0e',0);
INSERT INTO "tasks" VALUES('164c8f3f58e94126fc35',2,9,1,'48bc2fb46ec05302553c79c504ca28db7f43561176b257520a31a63106d96369',0);
INSERT INTO "tasks" VALUES('e52d294c3e5da448c47a',2,11,1,'4e50d80b23d4f0f24008f245b52bfd3e64142550747b859fe9a6ab117b48d21f',0);
INSERT INTO "tasks" VALUES('160711d6bd8e890e0137',3,16,1,'4085de1cdb817c610bae182a9f0f7f7250d5b17873d217f8c3fcbb56dce366a3',0);
INSERT INTO "tasks" VALUES('679a18fdac1a0764cb6a',3,19,1,'474e851f055a08b80215189475a30ba2388337547e8bd895ecc348591ee70213',0);
INSERT INTO "tasks" VALUES('fbfbdd08b68f6eb6af83',3,22,1,'5bc000160f8390869fd1caec023820bd603093d255553ba557c54d4b7e0c2c55',0);
INSERT INTO "tasks" VALUES('11dc38aa100db22052ad',4,27,1,'8652218cb0d32ea1f19677904294612f6d2ad6c7579d46c2aa782ab2cf184534',0);
CREATE TABLE terms(digest text primary key, raw text not null);
INSERT INTO "terms" VALUES('69a54bd90f7175e04f57','{"max_share": 0.05, "max_rework": 2, "form": "22b008ad22f8ab940b79", "categories": ["ocr", "attribute", "location", "quantity", "object", "chart"], "reasons": ["wrong_answer", "ambiguous", "too_large", "bad_box", "wrong_category", "too_easy", "bad_image"]}');
INSERT INTO "terms" VALUES('82ac9eac1e546e4131e8','{"max_share": 0.05, "max_rework": 2, "form": "cc00d749f9351cea606d", "categories": ["ocr", "attribute", "location", "quantity", "object", "chart"], "reasons": ["wrong_answer", "ambiguous", "too_large", "bad_box", "wrong_category", "too_easy", "bad_image"]}');
INSERT INTO "terms" VALUES('72593a91748e215ce1b8','{"max_share": 0.05, "max_rework": 2, "form": "e4a0c2564457201cfb5d", "categories": ["ocr", "attribute", "location", "quantity", "object", "chart"], "reasons": ["wrong_answer", "ambiguous", "too_large", "bad_box", "wrong_category", "too_easy", "bad_image"]}');
INSERT INTO "terms" VALUES('16a13cc6f809d8399cc2','{"max_share": 0.05, "max_rework": 2, "form": "06edaec1c1ea116f90a7", "categories": ["ocr", "attribute", "location", "quantity", "object", "chart"], "reasons": ["wrong_answer", "ambiguous", "too_large", "bad_box", "wrong_category", "too_easy", "bad_image"]}');
CREATE INDEX demands_by_item on demands(item_id, seq);
CREATE INDEX tasks_by_id on tasks(task_id);
CREATE INDEX revisions_by_task on revisions(task_id, seq);
CREATE INDEX revisions_without_roles on revisions(seq) where roles is null;
CREATE INDEX roles_by_person on roles(person_id, seq);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('roles',6);
INSERT INTO "sqlite_sequence" VALUES('demands',10);
INSERT INTO "sqlite_sequence" VALUES('revisions',18);
COMMIT;
PRAGMA user_version = 1;
