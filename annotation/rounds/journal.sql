-- The tables of a campaign's journal (annotation/rounds/journal_file.py). A change raises SCHEMA there and has its step.
-- demands.n_wanted: how many people answer it; bases: JSON of further frozen revisions (journal_file.py).
-- demands.terms: their digest, empty for one of a version before terms. tasks.data: digest of what was handed out, empty
-- if unknown. tasks.is_lost: a finished task that the server lost. retired: an unfinished one, handed out again. revisions.roles: of the signer from
-- hand-out to submission, null until accounts are pulled. roles: every role that an account had; last_demand is the last
-- one handed out before it changed, null for the role of today. in_force: the terms of tasks handed out now.
-- practice: people's tries, as the server counted them.
-- secret: stands in for the seed of a campaign without one; it never leaves this file.
-- touched: items whose work changed since the last complete sync, kept by triggers. progress: where records stood then.
create table if not exists projects(
    round text primary key, project_id integer not null, last_task integer not null, watermark text not null);
create table if not exists demands(
    seq integer primary key autoincrement, key text unique not null, round text not null, item_id text not null,
    attempt integer not null, serial integer not null, base_annotation integer not null, base_revision text not null,
    gold text not null, overlap integer not null,
    terms text not null default '', n_wanted integer not null default 1, bases text not null default '');
create index if not exists demands_by_item on demands(item_id, seq);
create table if not exists tasks(key text primary key, project_id integer not null, task_id integer not null,
    is_ready integer not null,
    data text not null default '', is_lost integer not null default 0);
create index if not exists tasks_by_id on tasks(task_id);
create table if not exists retired(
    task_id integer primary key, key text not null);
create index if not exists retired_by_key on retired(key);
create table if not exists revisions(
    seq integer primary key autoincrement, annotation_id integer not null, digest text not null,
    task_id integer not null, raw text not null,
    roles text,
    unique(annotation_id, digest));
create index if not exists revisions_by_task on revisions(task_id, seq);
create index if not exists revisions_without_roles on revisions(seq) where roles is null;
create table if not exists gone(annotation_id integer primary key);
create table if not exists hits(place integer primary key, raw text not null);
create table if not exists settled(only_row integer primary key check (only_row = 1), digest text not null);
create table if not exists people(person_id integer primary key, email text not null, name text not null,
    role text not null, is_active integer not null default 1);
create table if not exists roles(
    seq integer primary key autoincrement, person_id integer not null, role text not null,
    last_demand integer);
create index if not exists roles_by_person on roles(person_id, seq);
create table if not exists terms(digest text primary key, raw text not null);
create table if not exists in_force(round text primary key, terms text not null);
create index if not exists tasks_unready on tasks(key) where not is_ready;
create index if not exists demands_without_terms on demands(round) where terms = '';
create table if not exists secret(only_row integer primary key check (only_row = 1), seed integer not null);
create table if not exists practice(
    email text not null, campaign text not null, number integer not null, raw text not null,
    primary key (email, campaign, number));
create table if not exists touched(item_id text primary key) without rowid;
create table if not exists progress(item_id text primary key, stage text not null, round text not null) without rowid;
create trigger if not exists demand_touches after insert on demands begin
    insert or ignore into touched values (new.item_id); end;
create trigger if not exists terms_touch after update of terms on demands begin
    insert or ignore into touched values (new.item_id); end;
create trigger if not exists task_touches after insert on tasks begin
    insert or ignore into touched select item_id from demands where key = new.key; end;
create trigger if not exists task_left_touches after delete on tasks begin
    insert or ignore into touched select item_id from demands where key = old.key; end;
create trigger if not exists revision_touches after insert on revisions begin
    insert or ignore into touched select item_id from demands where key in (
    select key from tasks where task_id = new.task_id union select key from retired where task_id = new.task_id); end;
create trigger if not exists roles_touch after update of roles on revisions begin
    insert or ignore into touched select item_id from demands where key in (
    select key from tasks where task_id = new.task_id union select key from retired where task_id = new.task_id); end;
create trigger if not exists gone_touches after insert on gone begin
    insert or ignore into touched select item_id from demands where key in (
    select key from tasks where task_id in (select task_id from revisions where annotation_id = new.annotation_id) union
    select key from retired where task_id in (select task_id from revisions where annotation_id = new.annotation_id)
    ); end;
create trigger if not exists returned_touches after delete on gone begin
    insert or ignore into touched select item_id from demands where key in (
    select key from tasks where task_id in (select task_id from revisions where annotation_id = old.annotation_id) union
    select key from retired where task_id in (select task_id from revisions where annotation_id = old.annotation_id)
    ); end;
