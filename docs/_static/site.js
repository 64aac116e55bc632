// The two side bars have names, and every page has a heading.
document.addEventListener("DOMContentLoaded", () => {
    for (const image of document.querySelectorAll("article img")) {
        if (image.closest(".sd-row, a, table")) continue;
        const frame = document.createElement("div");
        frame.className = "sideways";
        image.replaceWith(frame);
        frame.append(image);
    }
    document.querySelector("aside.sidebar-drawer")?.setAttribute("aria-label", "Pages");
    document.querySelector("aside.toc-drawer")?.setAttribute("aria-label", "On this page");
    if (!document.querySelector("h1")) {
        const heading = document.createElement("h1");
        heading.className = "visually-hidden";
        heading.textContent = document.title;
        document.querySelector("article")?.prepend(heading);
    }
});

// What scrolls sideways can be reached by keyboard. Images have their width now.
window.addEventListener("load", () => {
    for (const one of document.querySelectorAll(".highlight pre, .table-wrapper, table.docutils, .formula p, .sideways")) {
        if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
    }
});
