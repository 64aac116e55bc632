// What scrolls sideways can be reached by keyboard; the two side bars have names.
document.addEventListener("DOMContentLoaded", () => {
    for (const image of document.querySelectorAll("article img")) {
        if (image.closest(".sd-card, a, table")) continue;
        const frame = document.createElement("div");
        frame.className = "sideways";
        image.replaceWith(frame);
        frame.append(image);
    }
    for (const one of document.querySelectorAll(".highlight pre, .table-wrapper, table.docutils, .formula p, .sideways")) {
        if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
    }
    document.querySelector("aside.sidebar-drawer")?.setAttribute("aria-label", "Pages");
    document.querySelector("aside.toc-drawer")?.setAttribute("aria-label", "On this page");
});
