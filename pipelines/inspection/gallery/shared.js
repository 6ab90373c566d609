"use strict";

const images = {}; // addresses by name

function make(tag, className, ...inside) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...inside);
  return node;
}

// the article of an inert template, with its images
function drawn(template) {
  const node = template.content.firstElementChild.cloneNode(true);
  for (const image of node.querySelectorAll("img[data-image]")) image.src = images[image.dataset.image];
  return node;
}
