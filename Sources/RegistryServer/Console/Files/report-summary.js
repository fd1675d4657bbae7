// The counts of reports, as the charts want them.

const steps = { hour: 3600, day: 86400 };
const none = { top: [], others: { count: 0, reports: 0 } };

/// Reads what the interface tells.
export function readSummary(told) {
  return {
    isCollecting: told.collecting ?? true,
    total: told.reports ?? told.total ?? 0,
    bucket: steps[told.bucket] ?? told.bucket,
    timeline: told.timeline ?? (told.buckets ?? []).map(({ at, count }) => [at, count]),
    hosts: told.hosts ?? sums(told.groups, ({ host }) => ({ host })),
    chains: told.chains ?? sums(told.groups, ({ pin }) => ({ leafPin: pin })),
    apps: told.apps ?? none,
    results: told.results ?? sums(told.groups, ({ rule }) => ({ rule })),
    unlisted: told.unlisted ?? null,
  };
}

function sums(groups = [], name) {
  const found = new Map();
  for (const group of groups) {
    const members = name(group);
    const key = JSON.stringify(members);
    const sum = found.get(key) ?? { ...members, reports: 0, last: 0 };
    sum.reports += group.count;
    sum.last = Math.max(sum.last, group.last);
    found.set(key, sum);
  }
  return { top: [...found.values()].sort((left, right) => right.reports - left.reports), others: { count: 0, reports: 0 } };
}
