'use strict';
const table = document.querySelector('table');
const columns = document.createElement('style');
document.head.append(columns);

// A folded stretch opens and closes.
table.addEventListener('click', (event) => {
  const button = event.target.closest('button');
  if (button) {
    const folded = button.closest('tbody').nextElementSibling;
    folded.hidden = !folded.hidden;
  }
});

// Lanes and entries that the filters exclude disappear, and rows that have nothing else.
const filters = document.querySelector('form');
filters.addEventListener('change', () => {
  const { instance, pod, writes } = filters.elements;
  table.classList.toggle('writes', writes.checked);
  const hidden = new Set();
  document.querySelectorAll('th').forEach((lane, at) => {
    const { instance: number, pod: name } = lane.dataset;
    const other = (number && instance.value && number !== instance.value)
      || (name && pod.value && name !== pod.value);
    if (other) hidden.add(at);
  });
  columns.textContent = [...hidden]
    .map((at) => `tr > :nth-child(${at + 1}) { display: none; }`).join('\n');
  let since = false;
  for (const row of table.querySelectorAll('tbody tr:not(.fold)')) {
    let shown = false;
    if (row.classList.contains('gap')) {
      row.hidden = !since;
      since = false;
      continue;
    }
    for (const entry of row.querySelectorAll('.entry')) {
      const other = entry.dataset.pod && pod.value && entry.dataset.pod !== pod.value;
      entry.hidden = Boolean(other);
      const read = writes.checked && entry.classList.contains('read');
      shown ||= !other && !read && !hidden.has(entry.parentElement.cellIndex);
    }
    row.hidden = !shown;
    since ||= shown && !row.parentElement.hidden;
  }
});
filters.addEventListener('submit', (event) => event.preventDefault());
