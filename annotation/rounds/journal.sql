-- The tables of a campaign's journal (annotation/rounds/journal.py)
create table if not exists projects(
    round text primary key, project_id integer not null, last_task integer not null, watermark text not null);
create table if not exists demands(
    seq integer primary key autoincrement, key text unique not null, round text not null, item_id text not null,
    attempt integer not null, serial integer not null, base_annotation integer not null, base_revision text not null,
    gold text not null, overlap integer not null);
create index if not exists demands_by_item on demands(item_id, seq);
create table if not exists tasks(key text primary key, project_id integer not null, task_id integer not null,
    is_ready integer not null);
create index if not exists tasks_by_id on tasks(task_id);
create table if not exists revisions(
    seq integer primary key autoincrement, annotation_id integer not null, digest text not null,
    task_id integer not null, raw text not null, unique(annotation_id, digest));
create index if not exists revisions_by_task on revisions(task_id, seq);
create table if not exists gone(annotation_id integer primary key);
create table if not exists hits(place integer primary key, raw text not null);
create table if not exists settled(only_row integer primary key check (only_row = 1), digest text not null);
create table if not exists people(person_id integer primary key, email text not null, name text not null,
    role text not null);
