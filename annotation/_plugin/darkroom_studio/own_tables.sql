-- The plug-in's tables in Label Studio's database (own_tables.py); {number} numbers rows, in SQLite or PostgreSQL.
create table if not exists darkroom_blind_answers(
    task_id integer not null, user_id integer not null, answer text not null, settled_at varchar(40) not null,
    primary key (task_id, user_id));
create table if not exists darkroom_work(
    task_id integer not null, user_id integer not null, seconds double precision not null,
    last_at double precision not null, primary key (task_id, user_id));
create table if not exists darkroom_failed_logins(
    name varchar(400) not null primary key, n integer not null, last_at double precision not null);
create table if not exists darkroom_practice_sets(
    campaign varchar(60) not null primary key, digest varchar(64) not null, content text not null);
create table if not exists darkroom_practice(
    user_id integer not null, campaign varchar(60) not null, number integer not null, step integer not null default 0,
    n_right integer not null default 0, images text not null, seconds double precision not null default 0,
    last_at double precision not null, ended_at varchar(40) not null default '',
    primary key (user_id, campaign, number));
create table if not exists darkroom_audit(
    id {number}, at varchar(40) not null, who varchar(400) not null, request varchar(320) not null,
    status integer not null, note varchar(500) not null);
