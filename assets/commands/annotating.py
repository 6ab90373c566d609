"""The annotation command that asks a policy; the others know none (``annotation/cli.py``)."""

from assets.commands.faults import CONSOLE, faults_as_messages


def pre_annotate() -> None:
    """Have a policy write records for annotators to correct.

    The campaign says so with `pre_annotate: pixels` (or thousandths: the frame of the policy's boxes); DARKROOM_POLICY,
    DARKROOM_POLICY_URL and DARKROOM_POLICY_MODEL name the policy. They keep the campaign's rules or are set aside;
    the next `darkroom annotate sync` shows them, marked as a model's. What was written is on the ledger: paid once.
    """
    from annotation.campaign import Campaign
    from annotation.pool import materialize_pool
    from annotation.pre_annotations import PreAnnotating
    from assets.replaying import progress_bar
    from assets.resources import PolicyResource
    from pipelines.workspace import Workspace

    with faults_as_messages(), Workspace.from_environment() as workspace:
        campaign = Campaign.load(workspace.annotation)
        policy = PolicyResource.from_settings().for_pre_annotating(workspace)
        materialize_pool(workspace, campaign, workspace.annotation)
        with progress_bar(CONSOLE, "pre-annotations") as progress:
            report = PreAnnotating(workspace, campaign, progress).materialize(policy)
        CONSOLE.print(f"{report.n_out:,} pre-annotations, {report.n_in - report.n_out:,} set aside", highlight=False)
        for reason, n in report.reasons.items():
            CONSOLE.print(f"  {reason} {n:,}", highlight=False)
