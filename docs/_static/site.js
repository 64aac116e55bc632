// What scrolls sideways can be reached by keyboard; the two side bars have names.
document.addEventListener("DOMContentLoaded", () => {
    for (const one of document.querySelectorAll(".highlight pre, .table-wrapper, table.docutils")) {
        if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
    }
    document.querySelector("aside.sidebar-drawer")?.setAttribute("aria-label", "Pages");
    document.querySelector("aside.toc-drawer")?.setAttribute("aria-label", "On this page");
});
