document.getElementById("download").addEventListener("click", () => {
  const text = document.getElementById("raw").textContent;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = "report.json";
  link.click();
  URL.revokeObjectURL(link.href);
});
